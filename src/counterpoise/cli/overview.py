"""What ``counterpoise --help`` prints: the commands in the order in which one meets them.

It is text, and not made of the commands: those, and what parses them, take longer to load than all of this to read.
"""

ABOUT = """\
Classifiers that meet real-world goals: good for the worst-off part of the data,
inside limits that you set."""

OVERVIEW = f"""\
Usage: counterpoise COMMAND

{ABOUT}

Begin:
  demo       the whole story on data that is made here, in about a minute
  init       look at your table, and write a goals file for it
  fit        fit what a goals file asks for, audit it, write a report: a run

With a run:
  predict    decide about the rows of a table
  explain    why rows are decided as they are
  evaluate   measure the model on another labelled table
  certify    which goals hold on the population, and how surely
  rebalance  other goals, another tail or objective, without training
  explore    move the bounds in a browser, and watch the trade-off
  report     write the report again

With a table alone, of scores or of anybody's answers:
  choose     thresholds that meet goals at the least error
  apply      decide by the thresholds that choose wrote
  audit      which goals the answers meet, and how surely

To look up:
  goals      all metrics, or how goals that you write are understood
  data       public data sets: list them, fetch them

This installation:
  warm-up    compile all kernels now, so that no later command waits for it
  --version, --install-completion

Each says more: counterpoise COMMAND --help. With a table of your own begin so:
  counterpoise init DATA.csv --target COLUMN
  counterpoise fit goals.toml

Metrics of your own: counterpoise --import FILE.py COMMAND runs that file first.
Exit codes: 0 done, 1 goals infeasible (or not met, with --strict), 2 bad input,
130 stopped by Ctrl-C.
"""
