//! Flags of `docker run` and `podman run` that `sietch run` does not have, each with the reason and the way out.
//!
//! docs/docker-flags.md lists them all with those that there are; a test holds the list to the parser.

/// Why there is no such thing in a machine of its own.
const CGROUP: &str = "is about control groups of the host, and a machine has its own CPUs and memory: use --cpus, -m or --cpuset-cpus";
const WINDOWS: &str = "is for Windows: leave it out";
const USERS: &str =
    "is about user namespaces of the host, and the users of a machine are its own: use --user";
const DISK_RATE: &str =
    "limits a device of the host, and the machine's disks are files: leave it out";
const POD: &str =
    "is about pods, and each machine stands by itself: use -p, or a network of machines";
const OVERCOMMIT: &str =
    "is about the host's swap, and a machine has the memory that -m says: leave it out";
const REGISTRY: &str =
    "is about registries: use `sietch pull` first, with what docker's config.json says";
const ENGINE: &str =
    "chooses a part of the container engine, and machines run on QEMU: leave it out";
const HEALTH_LOG: &str = "is about the log of health checks, of which `sietch inspect` shows the last five: leave it out";
const ACCOUNTS: &str =
    "writes the machine's accounts: mount a file of your own with -v FILE:/etc/passwd:ro";
const BANDWIDTH: &str =
    "is about cache and bandwidth control of the host's processor: use --cpuset-cpus";

/// Names without their hyphens, and how a sentence goes on that begins with them.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "attach",
        "chooses some of the streams: redirect them, as in 2>/dev/null",
    ),
    ("authfile", REGISTRY),
    ("blkio-weight", CGROUP),
    ("blkio-weight-device", CGROUP),
    ("cgroup-conf", CGROUP),
    ("cgroup-parent", CGROUP),
    ("cgroupns", CGROUP),
    ("cgroups", CGROUP),
    ("chrootdirs", "shares folders between roots: use -v"),
    ("cpu-count", WINDOWS),
    ("cpu-percent", WINDOWS),
    ("cpu-period", CGROUP),
    ("cpu-quota", CGROUP),
    ("cpu-rt-period", CGROUP),
    ("cpu-rt-runtime", CGROUP),
    ("cpu-shares", CGROUP),
    (
        "cpuset-mems",
        "binds memory to the host's nodes: start sietch by numactl --membind",
    ),
    (
        "decryption-key",
        "is about encrypted images: decrypt it with skopeo copy first",
    ),
    (
        "detach-keys",
        "is about leaving a machine that goes on, and one in the foreground ends with its command: use -d, and `sietch attach --detach-keys`",
    ),
    (
        "device",
        "gives a device of the host: use --disk FILE for disks, and programs drive cards with --bypass",
    ),
    ("device-cgroup-rule", CGROUP),
    ("device-read-bps", DISK_RATE),
    ("device-read-iops", DISK_RATE),
    ("device-write-bps", DISK_RATE),
    ("device-write-iops", DISK_RATE),
    (
        "disable-content-trust",
        "is about signatures that are not checked here in any case: leave it out",
    ),
    ("gidmap", USERS),
    (
        "gpus",
        "gives a graphics card, which machines have no driver for: leave it out",
    ),
    ("group-entry", ACCOUNTS),
    ("health-log-destination", HEALTH_LOG),
    ("hostuser", USERS),
    ("init-ctr", POD),
    (
        "init-path",
        "names an init, and the machine's kernel reaps orphans itself: leave it out",
    ),
    ("intel-rdt-closid", BANDWIDTH),
    ("io-maxbandwidth", WINDOWS),
    ("io-maxiops", WINDOWS),
    ("isolation", WINDOWS),
    ("kernel-memory", CGROUP),
    (
        "link",
        "leads to another container: put both on a network, or use -p and --add-host NAME:host-gateway",
    ),
    (
        "link-local-ip",
        "adds a second address: use --ip or --ip6 for the only one",
    ),
    (
        "log-opt",
        "is for loggers of the host: use `sietch logs` with --tail or --since",
    ),
    ("memory-reservation", OVERCOMMIT),
    ("memory-swap", OVERCOMMIT),
    ("memory-swappiness", OVERCOMMIT),
    ("oom-kill-disable", CGROUP),
    ("passwd", ACCOUNTS),
    ("passwd-entry", ACCOUNTS),
    (
        "personality",
        "chooses another execution domain, and there is one: leave it out",
    ),
    (
        "pids-limit",
        "is a limit of the host's, and a machine has a table of processes of its own: use --ulimit nproc=NUMBER",
    ),
    ("pod", POD),
    ("pod-id-file", POD),
    (
        "preserve-fd",
        "passes descriptors, of which a machine has three: use -v for files and -p for sockets",
    ),
    (
        "preserve-fds",
        "passes descriptors, of which a machine has three: use -v for files and -p for sockets",
    ),
    ("rdt-class", BANDWIDTH),
    ("requires", POD),
    ("runtime", ENGINE),
    (
        "sdnotify",
        "is about systemd: use --health-cmd, and `sietch inspect` for the answer",
    ),
    ("seccomp-policy", ENGINE),
    (
        "secret",
        "is about a store of secrets: mount a file with -v FILE:/run/secrets/NAME:ro",
    ),
    (
        "shm-size-systemd",
        "is about systemd in a container: use --tmpfs /run",
    ),
    (
        "storage-opt",
        "is about the engine's storage: use --overlay VOLUME, made by `sietch volume create --size`",
    ),
    ("subgidname", USERS),
    ("subuidname", USERS),
    (
        "systemd",
        "mounts what systemd wants, which a machine has: leave it out",
    ),
    ("tls-verify", REGISTRY),
    ("uidmap", USERS),
    ("use-api-socket", ENGINE),
    ("userns", USERS),
    (
        "variant",
        "chooses among kinds of ARM, and machines are amd64: leave it out",
    ),
    (
        "volume-driver",
        "names a plug-in of docker's: use -v NAME:GUEST, a disk of `sietch volume`",
    ),
];

/// The sentence for a flag as typed, if it is one of these.
pub fn sentence(typed: &str) -> Option<String> {
    let name = match typed {
        "-a" => "attach",
        "-c" => "cpu-shares",
        typed => typed.strip_prefix("--")?.split('=').next()?,
    };
    let (name, why) = REFUSED.iter().find(|(refused, _)| *refused == name)?;
    Some(format!("--{name} {why}."))
}

/// Commands of docker's and podman's that there are not, and how a sentence goes on that begins with them.
const COMMANDS: &[(&str, &str)] = &[
    (
        "commit",
        "makes an image of a container: use --root-disk VOLUME, which keeps what is changed",
    ),
    (
        "create",
        "makes a container that does not run: use `sietch run -d`",
    ),
    (
        "diff",
        "shows what a container changed: use --overlay VOLUME, which holds it",
    ),
    (
        "login",
        "keeps a password: use docker's or podman's own, whose file `sietch pull` reads",
    ),
    (
        "pause",
        "stops a container's processes: use `sietch kill -s STOP NAME`",
    ),
    (
        "save",
        "writes an image: use skopeo copy from where it came",
    ),
    (
        "start",
        "starts a container that has ended: use `sietch restart NAME`",
    ),
    (
        "unpause",
        "lets a container's processes go on: use `sietch kill -s CONT NAME`",
    ),
];

/// The sentence for a command as typed, if it is one of these.
pub fn command_sentence(typed: &str) -> Option<String> {
    let (name, why) = COMMANDS.iter().find(|(name, _)| *name == typed)?;
    Some(format!("`{name}` {why}."))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Cli;

    #[test]
    fn no_command_or_flag_that_there_is_is_said_not_to_be() {
        let command = Cli::command();
        for (name, _) in COMMANDS {
            assert!(command.find_subcommand(name).is_none(), "{name}");
        }
        let run = command.find_subcommand("run").unwrap();
        for (name, _) in REFUSED {
            let is_it = |arg: &clap::Arg| arg.get_long() == Some(name);
            assert!(!run.get_arguments().any(is_it), "{name}");
        }
    }
}
