"""What a command returns to the shell, and what is shown without a command: both before anything heavy is loaded."""

from pathlib import Path

DONE = 0
NOT_MET = 1  # the goals cannot be met together, or were not met and --strict asked for it
BAD_INPUT = 2
INTERRUPTED = 130  # by Ctrl-C
NO_READER = 141  # what a shell shows for a program that ended because nobody read on

# Text, and not made of the commands: those, and what parses them, take longer to load than all of this to read.
OVERVIEW = Path(__file__).with_name("overview.txt").read_text(encoding="utf-8")


def help_by_command() -> dict[str, str]:
    """Return what each command is for on one screen, an example first."""
    text = Path(__file__).with_name("help.txt").read_text(encoding="utf-8")
    sections = dict(section.split("\n", 1) for section in text.split("# ")[1:])
    return {name: f"{words}Every option in full: counterpoise {name} --help-all\n" for name, words in sections.items()}
