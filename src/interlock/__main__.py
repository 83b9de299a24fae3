"""`python -m interlock` is the same as `interlock`."""

from interlock.cli import main

main()
