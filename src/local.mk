# Nothing to build here yet.
