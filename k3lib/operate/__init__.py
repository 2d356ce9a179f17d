"""Running a deployment: what to accept before the first request, what to do when it fails, what to watch."""
