"""A model compiled by Tenon, by its own `bench`.

    measure_tenon.py OUT --threads T [--samples N]
"""

import json
import subprocess

import common

arguments = common.command_line().parse_args()


def bench(prompts, depth, batch, steps):
    options = ["-p", prompts, "-d", str(depth), "-b", str(batch), "-n", str(steps)]
    options += ["-r", str(arguments.samples), "--threads", str(arguments.threads), "--json"]
    return json.loads(subprocess.run([arguments.model, "bench", *options], stdout=subprocess.PIPE, check=True).stdout)


for result in bench(",".join(map(str, common.PREFILL)), 0, 1, 0)["prefill"]:
    for rate in result["tok_s"]:
        common.emit(f"prefill {result['tokens']}", rate)
for depth, batch, steps in common.DECODE:
    for rate in bench("0", depth, batch, steps)["decode"][0]["tok_s"]:
        common.emit(common.decode_name(depth, batch), rate)
