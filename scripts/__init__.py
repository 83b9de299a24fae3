"""Programs for those who work on Interlock itself."""
