"""One turn of an engine: a process that loads the model and measures it, and a few that are timed to their first token.

Other processes disturb. How much CPU time they had meanwhile is what the kernel counts for all, less the engine's own.
"""

import json
import os
import subprocess
import tempfile
import time

DISTURBED = 0.04  # the share of time from which on others disturb
STARTS = 2  # to the first token
QUIET_SECONDS = 15  # how long a turn waits for other processes to end
TICKS = 0.05  # seconds by which the kernel's count of a short process may be off


def busy_seconds():
    """Seconds in which a CPU ran some process, or was taken by the hypervisor."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def wait_until_quiet():
    for _ in range(QUIET_SECONDS * 2):
        before = busy_seconds()
        time.sleep(0.5)
        if busy_seconds() - before < TICKS:
            return


class Process:
    """A command that has run: its output, seconds to the first byte of it, peak memory, and others' share of the time.

    Without `threads` it is one that knows no such option, and may have nothing to say. After `seconds` it is given up."""

    def __init__(self, command, threads=None, seconds=None):
        environment = dict(os.environ, HF_HUB_OFFLINE="1")
        command = [*map(str, command)]
        name = os.path.basename(command[0])
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
            command += ["--threads", str(threads)]
        if seconds:
            command = ["timeout", str(seconds), *command]
        with tempfile.TemporaryFile() as errors:
            busy, start = busy_seconds(), time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, bufsize=0)
            first = process.stdout.read(1)
            self.first_byte = time.perf_counter() - start
            self.output = (first + process.stdout.readall()).decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = wall = time.perf_counter() - start
            others = busy_seconds() - busy - usage.ru_utime - usage.ru_stime
            if seconds and process.returncode == 124:
                raise RuntimeError(f"{name} took more than {seconds} s")
            if process.returncode or (threads and not first):
                errors.seek(0)
                last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                raise RuntimeError(f"{name} ended with {process.returncode}: {' '.join(last)}")
        self.memory = usage.ru_maxrss * 1024
        self.others = round(max(0, others - TICKS) / wall, 3)
        self.disturbed = self.others > DISTURBED


def take(engine, threads, samples):
    """The samples of a turn: [{measure, value, others}]."""
    process = Process([*engine.measure, "--samples", samples], threads)
    found = [dict(json.loads(line), others=process.others) for line in process.output.splitlines()]
    found.append({"measure": "peak memory", "value": process.memory, "others": process.others})
    for _ in range(STARTS):
        process = Process(engine.first, threads)
        found.append({"measure": "first token", "value": round(process.first_byte, 5), "others": process.others})
        found.append({"measure": "first token memory", "value": process.memory, "others": process.others})
    return found
