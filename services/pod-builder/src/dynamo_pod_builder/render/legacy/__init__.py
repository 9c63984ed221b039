"""What v1alpha1 says that v1beta1 has no field for."""
