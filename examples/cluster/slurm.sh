#!/bin/bash
# A Ray cluster of the nodes of a Slurm job, for one matrix; the cluster ends with the job.
#
#   sbatch --nodes=4 slurm.sh my_config.yaml --out /shared/runs
#
# Arguments are those of osmabench run. What a time limit cuts off goes on with the same command.
#SBATCH --job-name=osmabench
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
set -euo pipefail

export RAY_TMPDIR=${RAY_TMPDIR:-/tmp/ray_$SLURM_JOB_ID} RAY_USAGE_STATS_ENABLED=0
port=$((20000 + SLURM_JOB_ID % 10000))
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | cut -d ' ' -f 1):$port
start=(mkdir -p "$RAY_TMPDIR/ray" '&&' exec ray start --block --object-store-memory 100000000)
start=(bash -c "${start[*]} \"\$@\"" ray "--num-cpus=$SLURM_CPUS_ON_NODE")

srun --nodes=1 --ntasks=1 --nodelist="$head" "${start[@]}" --head "--port=$port" &
for _ in {1..60}; do
    timeout 10 ray status --address "$address" > /dev/null 2>&1 && break
    sleep 2
done
others=$((SLURM_JOB_NUM_NODES - 1))
if ((others)); then
    srun --nodes=$others --ntasks=$others --exclude="$head" "${start[@]}" --address "$address" &
fi
osmabench run "$@" --cluster "$address"
