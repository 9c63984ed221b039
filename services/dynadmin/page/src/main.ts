// The page: all elements, by importing the shell that uses them.
import "./app.ts";
