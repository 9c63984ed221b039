"""The table of attacks, a module for each class of what is attacked."""
