#!/usr/bin/env bash
# A Slurm of fake nodes on this machine's loopback, from the distribution's packages.
#
#   cluster.sh install              packages (apt-get, root)
#   cluster.sh check                says what is missing; rc 3 if a cluster cannot start here
#   cluster.sh start STATE          starts munged, slurmctld, one slurmd a node, and slurmrestd if REST=1
#   cluster.sh stop STATE           stops them by the process ids that start wrote, and nothing else
#   cluster.sh down STATE NAME...   stops some of them: slurmctld, slurmrestd, slurmdbd or a node's name; -9 kills
#   cluster.sh up STATE NAME...     starts them again
#
# STATE is a new folder that holds everything: configuration, keys, sockets, logs, process ids. `. STATE/env` makes
# squeue, sinfo, scontrol and sbatch talk to the cluster. Several clusters run beside each other on other ports.
#
# What the cluster is, by environment:
#   NODES    a line a node or range of nodes: name, CPUs, MB of memory, GPU type (- for no GPUs, any for GPUs without a type), GPUs, features (- for none)
#   PARTITIONS  lines of slurm.conf for partitions; by default one, "all", over all nodes
#   EXTRA    further lines of slurm.conf
#   PORT     first of the ports: slurmctld PORT, slurmrestd PORT+1, slurmdbd PORT+2, nodes from PORT+10 (default: free ones)
#   REST     1 starts slurmrestd; ACCOUNTS 1 starts MariaDB and slurmdbd (packages of their own)
#   CTLD     options of slurmctld, such as -R (all state is kept when it starts again, changes by scontrol too)
#   ROOT     folder with another release's packages (made by debootstrap), whose programs are run
set -euo pipefail

NODES_DEFAULT='n[1-4] 32 64000 a100 8 a100,fast
t[1-4] 16 32000 t4 4 t4,slow'
PROGRAMS="munged slurmctld slurmd squeue sinfo scontrol sbatch scancel"

fail() { echo "cluster.sh: $*" >&2; exit 1; }

install() {
  command -v apt-get >/dev/null || { echo "cluster.sh: no apt-get here: install slurmctld, slurmd, slurm-client, munge and slurmrestd" >&2; exit 3; }
  [ "$(id -u)" = 0 ] || { echo "cluster.sh: installing needs root" >&2; exit 3; }
  local packages="slurmctld slurmd slurm-client munge slurmrestd slurm-wlm-jwt-plugin"
  [ "${ACCOUNTS:-0}" = 1 ] && packages="$packages slurmdbd slurm-wlm-mysql-plugin mariadb-server"
  if missing >/dev/null; then return; fi
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null \
    || { echo "cluster.sh: apt-get could not install $packages" >&2; exit 3; }
}

# Prints what is missing for a cluster; succeeds if nothing is.
missing() {
  local name absent=
  for name in $PROGRAMS; do PATH="$PATH:/usr/sbin:/sbin" command -v "$name" >/dev/null || absent="$absent $name"; done
  [ -e "$(plugins)/auth_jwt.so" ] || absent="$absent auth_jwt.so"
  [ "$(id -u)" = 0 ] || absent="$absent root"
  [ -z "$absent" ] || { echo "missing:$absent (tests/slurm/cluster.sh install)"; return 1; }
}

plugins() { ls -d /usr/lib/*/slurm-wlm /usr/lib*/slurm 2>/dev/null | head -n 1; }

# Becomes a program, in a session of its own, so that Ctrl-C in a terminal does not reach it: $! is then its id.
become() { if [ -n "${ROOT:-}" ]; then exec setsid chroot "$ROOT" "$@"; else exec setsid "$@"; fi; }

run_in() { if [ -n "${ROOT:-}" ]; then chroot "$ROOT" "$@"; else "$@"; fi; }

# Prints the first of 60 free ports.
free_ports() {
  python3 - <<'PY'
import random, socket
for _ in range(200):
    first = random.randrange(20000, 31000)
    try:
        for port in range(first, first + 60):
            with socket.socket() as door:
                door.bind(("127.0.0.1", port))
    except OSError:
        continue
    print(first)
    break
PY
}

typed() { [ "$1" = any ] || printf ':%s' "$1"; }

# One line a node, ranges such as n[1-4] spread out.
each_node() {
  echo "${NODES:-$NODES_DEFAULT}" | while read -r name cpus memory kind gpus features; do
    [ -n "$name" ] || continue
    if [[ $name =~ ^([^[]*)\[([0-9]+)-([0-9]+)\]$ ]]; then
      for number in $(seq "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"); do
        echo "${BASH_REMATCH[1]}$number $cpus $memory $kind $gpus $features"
      done
    else
      echo "$name $cpus $memory $kind $gpus $features"
    fi
  done
}

write_configuration() {
  local state=$1 version port=$2
  mkdir -p "$state"/{spool,ctld,gpu,pid,log,munge} && chmod 755 "$state" "$state/munge"
  head -c 32 /dev/urandom >"$state/jwt.key"; head -c 1024 /dev/urandom >"$state/munge/key"
  chmod 600 "$state/jwt.key" "$state/munge/key"
  version=$(run_in slurmctld -V | awk '{print $2}')
  {
    cat <<CONF
ClusterName=fake$port
SlurmctldHost=$(uname -n)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$state/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$state/jwt.key
CredType=cred/munge
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/spool/%n
SlurmctldPidFile=$state/pid/slurmctld
SlurmdPidFile=$state/pid/%n
SlurmctldLogFile=$state/log/slurmctld
SlurmdLogFile=$state/log/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
MinJobAge=${MIN_JOB_AGE:-3600}
MaxJobCount=20000
SlurmctldTimeout=10
SlurmdTimeout=${NODE_TIMEOUT:-20}
MessageTimeout=20
KillWait=1
JobCompType=jobcomp/none
PropagateResourceLimits=NONE
RebootProgram=/bin/true
CONF
    if [ "${ACCOUNTS:-0}" = 1 ]; then
      echo "AccountingStorageType=accounting_storage/slurmdbd"
      echo "AccountingStorageHost=127.0.0.1"
      echo "AccountingStoragePort=$((port + 2))"
      echo "AccountingStoragePass=$state/munge/socket"
      echo "AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:t4"
      echo "AccountingStorageEnforce=limits,qos"
    fi
    grep -q '^SchedulerParameters' <<<"${EXTRA:-}" || echo "SchedulerParameters=bf_interval=1,bf_continue,bf_window=1440"
    echo "${EXTRA:-}"
    local at=$((port + 10))
    each_node | { while read -r name cpus memory kind gpus features; do
      echo "NodeName=$name NodeHostname=$(uname -n) NodeAddr=127.0.0.1 Port=$at CPUs=$cpus RealMemory=$memory State=UNKNOWN$(
        [ "$kind" = - ] || printf ' Gres=gpu%s:%s' "$(typed "$kind")" "$gpus")$([ "$features" = - ] || printf ' Feature=%s' "$features")"
      at=$((at + 1))
    done; }
    echo "${PARTITIONS:-PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=INFINITE}"
  } >"$state/slurm.conf"
  each_node | while read -r name _ _ kind gpus _; do
    [ "$kind" = - ] && continue
    for number in $(seq 0 $((gpus - 1))); do : >"$state/gpu/$name-$number"; done
    echo "NodeName=$name Name=gpu$([ "$kind" = any ] || printf ' Type=%s' "$kind") File=$state/gpu/$name-[0-$((gpus - 1))]"
  done >"$state/gres.conf"
  case $version in 2[0-2].*|23.02*) ;; *) echo "CgroupPlugin=disabled" >"$state/cgroup.conf" ;; esac
  cat >"$state/env" <<ENV
export SLURM_CONF=$state/slurm.conf
export COPTER_SLURM_STATE=$state
export COPTER_SLURM_REST=http://127.0.0.1:$((port + 1))
export COPTER_SLURM_VERSION=$version
export PATH=\$PATH:/usr/sbin:/sbin
ENV
  echo "$port" >"$state/port"; echo "${ROOT:-}" >"$state/root"
}

# Starts one of the cluster's programs in the background; its id goes to STATE/pid/NAME.
start_one() {
  local state=$1 name=$2 port; port=$(cat "$state/port")
  case $name in
    munged)
      chown root "$state/munge"
      become munged --force --foreground --key-file "$state/munge/key" --socket "$state/munge/socket" --pid-file \
        "$state/pid/munged.own" --log-file "$state/log/munged" --seed-file "$state/munge/seed" >/dev/null 2>&1 </dev/null & ;;
    slurmctld) become env SLURM_CONF="$state/slurm.conf" slurmctld -D ${CTLD:-} >/dev/null 2>&1 </dev/null & ;;
    slurmrestd)
      local plugin=  # one without accounts refuses to load the plugin for them
      [ "${ACCOUNTS:-0}" = 1 ] || case $COPTER_SLURM_VERSION in
        22.05*) plugin="-s openapi/v0.0.38" ;; 23.02*) plugin="-s openapi/v0.0.39" ;; *) plugin="-s openapi/slurmctld" ;;
      esac
      become setpriv --reuid 65534 --regid 65534 --clear-groups env SLURM_CONF="$state/slurm.conf" SLURM_JWT=daemon \
        slurmrestd -a rest_auth/jwt $plugin "127.0.0.1:$((port + 1))" >"$state/log/slurmrestd" 2>&1 </dev/null & ;;
    slurmdbd) become env SLURM_CONF="$state/slurm.conf" slurmdbd -D >/dev/null 2>&1 </dev/null & ;;
    mariadbd)
      [ -d "$state/mysql/mysql" ] || { mkdir -p "$state/mysql" && chown mysql "$state/mysql" \
        && mariadb-install-db --user=mysql --datadir="$state/mysql" --auth-root-authentication-method=socket >/dev/null 2>&1; }
      become mariadbd --no-defaults --user=mysql --datadir="$state/mysql" --socket="$state/mysql/socket" --skip-networking \
        --pid-file="$state/mysql/pid" --innodb-buffer-pool-size=64M >"$state/log/mariadbd" 2>&1 </dev/null & ;;
    *) become env SLURM_CONF="$state/slurm.conf" slurmd -D -N "$name" >/dev/null 2>&1 </dev/null & ;;
  esac
  echo $! >"$state/pid/$name.ours"
}

# Ends some of the cluster's programs: all get the signal, then each is waited for, at most 5 s, and killed.
stop_some() {
  local state=$1 signal=$2 name id left; shift 2
  for name in "$@"; do
    [ -f "$state/pid/$name.ours" ] && kill "-$signal" "$(cat "$state/pid/$name.ours")" 2>/dev/null || true
  done
  for name in "$@"; do
    [ -f "$state/pid/$name.ours" ] || continue
    id=$(cat "$state/pid/$name.ours"); left=100
    while [ "$left" -gt 0 ] && kill -0 "$id" 2>/dev/null; do sleep 0.05; left=$((left - 1)); done
    kill -KILL "$id" 2>/dev/null || true
    rm -f "$state/pid/$name.ours"
  done
}

wait_for() {
  local what=$1 i; shift
  for i in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  stop "$STATE"
  fail "$what did not answer within 30 s; its log is in $STATE/log"
}

start() {
  local state=$1 name
  [ ! -e "$state/slurm.conf" ] || fail "$state holds a cluster already"
  [ -n "${ROOT:-}" ] || missing >&2 || exit 3
  mkdir -p "$state"
  write_configuration "$state" "${PORT:-$(free_ports)}"
  . "$state/env"
  start_one "$state" munged
  wait_for munged test -S "$state/munge/socket"
  if [ "${ACCOUNTS:-0}" = 1 ]; then start_accounts "$state"; fi
  start_one "$state" slurmctld
  wait_for slurmctld run_in env SLURM_CONF="$state/slurm.conf" scontrol ping
  each_node | while read -r name _; do start_one "$state" "$name"; done
  if [ "${REST:-0}" = 1 ]; then
    start_one "$state" slurmrestd
    wait_for slurmrestd bash -c "exec 3<>/dev/tcp/127.0.0.1/$(($(cat "$state/port") + 1))"
  fi
  wait_for "the nodes" all_idle "$state"
}

start_accounts() {
  local state=$1 port; port=$(cat "$state/port")
  start_one "$state" mariadbd
  wait_for mariadbd mariadb --socket="$state/mysql/socket" -e "create database if not exists slurm_acct_db"
  cat >"$state/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$state/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$state/jwt.key
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$((port + 2))
SlurmUser=root
LogFile=$state/log/slurmdbd
PidFile=$state/pid/slurmdbd
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
CONF
  chmod 600 "$state/slurmdbd.conf"
  MYSQL_UNIX_PORT="$state/mysql/socket" start_one "$state" slurmdbd
  wait_for slurmdbd run_in env SLURM_CONF="$state/slurm.conf" sacctmgr -n list cluster
  sacctmgr -i -Q add cluster "fake$port" >/dev/null || true
}

all_idle() {
  ! run_in env SLURM_CONF="$1/slurm.conf" sinfo -h -N -o %T | grep -qvE '^(idle|mixed|allocated)$'
}

stop() {
  local state=$1 name others=
  [ -d "$state/pid" ] || return 0
  for name in "$state"/pid/*.ours; do
    name=$(basename "$name" .ours)
    case $name in munged|mariadbd|'*') ;; *) others="$others $name" ;; esac
  done
  end_steps "$state"
  stop_some "$state" TERM $others
  end_steps "$state"
  stop_some "$state" TERM mariadbd munged
}

# Ends jobs that still run: each slurmstepd that holds one of this cluster's logs open, and its job's processes.
end_steps() {
  local state=$1 id child
  for id in $(pgrep slurmstepd || true); do
    readlink "/proc/$id/fd/"* 2>/dev/null | grep -q "^${ROOT:-}$state/log/" || continue
    for child in $(pgrep -P "$id" || true); do kill -KILL -- "-$child" 2>/dev/null || kill -KILL "$child" 2>/dev/null || true; done
    kill -KILL "$id" 2>/dev/null || true
  done
}

[ $# -ge 1 ] || { sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 2; }
command=$1; shift
case $command in
  install) install ;;
  check) missing || exit 3 ;;
  start|stop|down|up)
    [ $# -ge 1 ] || fail "$command needs the folder of the cluster"
    if [ "$command" = start ] && [ -n "${ROOT:-}" ] && [ ! -e "$1" ]; then
      mkdir -p "$ROOT$1" && ln -s "$ROOT$1" "$1"  # one path for both sides of chroot
    fi
    mkdir -p "$1"; STATE=$(cd "$1" && pwd); shift
    [ -f "$STATE/root" ] && ROOT=$(cat "$STATE/root")
    case $command in
      start) start "$STATE" ;;
      stop) stop "$STATE" ;;
      down)
        signal=TERM; [ "${1:-}" = -9 ] && { signal=KILL; shift; }
        stop_some "$STATE" "$signal" "$@" ;;
      up) . "$STATE/env"; for name in "$@"; do start_one "$STATE" "$name"; done ;;
    esac ;;
  *) fail "no command $command" ;;
esac
