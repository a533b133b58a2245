"""Tables in Markdown."""


def table(head, rows, numbers="---:"):
    """All columns but the first are numbers."""
    lines = [head, ["---", *[numbers] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def threads_of(count):
    return f"{count} thread" + ("s" if int(count) > 1 else "")
