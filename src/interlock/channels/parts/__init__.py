"""What channels share: requests to other services, and the words of a message."""
