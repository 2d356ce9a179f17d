"""Running a deployment: from the empty disk to the service, and what to do when it does not behave."""
