"""What v1alpha1 can express and v1beta1 has no field for."""
