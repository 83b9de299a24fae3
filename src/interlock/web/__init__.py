"""What the server and the foreign protocols share: limits, who is there, one shape of answers and errors."""
