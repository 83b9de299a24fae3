"""What programs need and no part owns: work off the event loop, a loop on a thread, durations, JSON Schema, signals."""
