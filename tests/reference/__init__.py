"""Pages and pictures of docs/ that are written by what the code knows: `make reference`."""
