"""What every request passes before its route: ids, time limits, host names, other origins."""
