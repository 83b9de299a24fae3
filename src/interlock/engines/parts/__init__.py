"""What several engines share."""
