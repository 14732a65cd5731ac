"""`for_command`: hints of errors, which name options, said where a command does not have them."""

import re

import click

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def for_command(hint: str, name: str, group: click.Group) -> str:
    """The hint, with the command to look at if it names options that command `name` of the group does not have.

    Before: ``raise it with --limit nodes=9``. After, in a command without it: ``raise it with --limit nodes=9
    (an option of onnxhw quantize)``. Hints that name a command are left alone.
    """
    wanted = set(OPTION.findall(hint))
    if not wanted or "onnxhw " in hint or name not in group.list_commands(context := click.Context(group)):
        return hint
    if wanted <= _options(group, context, name):
        return hint
    owner = next((one for one in group.list_commands(context) if wanted <= _options(group, context, one)), None)
    return f"{hint} (an option of onnxhw {owner})" if owner else hint


def _options(group: click.Group, context: click.Context, name: str) -> set[str]:
    command = group.get_command(context, name)
    return {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)} if command else set()
