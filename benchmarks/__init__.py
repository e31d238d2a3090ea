"""Speed measured side by side, contenders interleaved in one process; each script prints a table and writes JSON."""
