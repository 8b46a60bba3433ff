"""Run the command line: `python -m softgold`."""

try:
    from softgold.cli import main

    code = main()
except KeyboardInterrupt:  # outside of `main`, which meets it itself
    code = 130
raise SystemExit(code)
