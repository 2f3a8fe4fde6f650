"""What a command returns to the shell, and what is shown without a command: both before anything heavy is loaded."""

from pathlib import Path

DONE = 0
NOT_MET = 1  # the goals cannot be met together, or were not met and --strict asked for it
BAD_INPUT = 2
INTERRUPTED = 130  # by Ctrl-C
NO_READER = 141  # what a shell shows for a program that ended because nobody read on

# Text, and not made of the commands: those, and what parses them, take longer to load than all of this to read.
OVERVIEW = Path(__file__).with_name("overview.txt").read_text(encoding="utf-8")
