//! Commands about machines by name: `ps`, `logs`, `wait`, `rm`, `inspect`, `events`, `rename`, `stats` and `port`.

use clap::Args;

use super::{CpuList, InspectOutput, Memory, OutputFlags, RestartPolicy, When};

/// `sietch ps`.
#[derive(Debug, Args)]
pub struct PsFlags {
    /// List machines that have ended, too
    #[arg(short = 'a', long)]
    pub all: bool,
    /// List only machines of which this holds: name=PART, status=running|restarting|exited, label=KEY[=VALUE],
    /// exited=STATUS, health=healthy|unhealthy|starting|none or ancestor=IMAGE
    #[arg(short = 'f', long, value_name = "KEY=VALUE")]
    pub filter: Vec<String>,
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// Print names only
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// `sietch logs`.
#[derive(Debug, Args)]
pub struct LogsFlags {
    /// Keep on until the machine ends
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Show so many lines from the end only
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<usize>,
    /// Put the time before each line, in UTC
    #[arg(short = 't', long)]
    pub timestamps: bool,
    /// Show only what was written since: seconds since 1970, a time ago such as 10m, or 2026-11-29T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<When>,
    /// Show only what was written until then
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
    /// The machine
    pub name: String,
}

/// `sietch inspect`.
#[derive(Debug, Args)]
pub struct InspectFlags {
    /// The form.
    #[command(flatten)]
    pub output: InspectOutput,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch events`.
#[derive(Debug, Args)]
pub struct EventsFlags {
    /// Show what happened since, too: seconds since 1970, a time ago such as 10m, or 2026-11-29T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<When>,
    /// Show what happened until then, and leave
    #[arg(long, value_name = "TIME")]
    pub until: Option<When>,
    /// The form; an object a line, as there is no end.
    #[command(flatten)]
    pub output: OutputFlags,
}

/// `sietch rename`.
#[derive(Debug, Args)]
pub struct RenameFlags {
    /// The machine, which has ended
    pub name: String,
    /// Its new name
    #[arg(value_parser = super::parse_name)]
    pub new_name: String,
}

/// `sietch stats`.
#[derive(Debug, Args)]
pub struct StatsFlags {
    /// Print once
    #[arg(long)]
    pub no_stream: bool,
    /// The form; with --output json one array for each look.
    #[command(flatten)]
    pub output: OutputFlags,
    /// The machines [default: all that run]
    pub names: Vec<String>,
}

/// `sietch wait`: names of machines.
#[derive(Debug, Args)]
pub struct MachinesFlags {
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch rm`.
#[derive(Debug, Args)]
pub struct RmFlags {
    /// End machines that run, by force
    #[arg(short = 'f', long)]
    pub force: bool,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch port`.
#[derive(Debug, Args)]
pub struct PortFlags {
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// The machine
    pub name: String,
}

/// `sietch top`.
#[derive(Debug, Args)]
pub struct TopFlags {
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// The machine
    pub name: String,
    /// Columns, by ps' names: -o pid,user,args or pid user args; -ef and aux are known too
    #[arg(
        value_name = "PS OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub columns: Vec<String>,
}

/// `sietch update`.
#[derive(Debug, Args)]
pub struct UpdateFlags {
    /// As many of the host's CPUs may work for the machine at once; whole ones, so that 1.5 is 2
    #[arg(long, value_name = "COUNT", value_parser = super::parse_cpus)]
    pub cpus: Option<u8>,
    /// The host's CPUs that run the machine, such as 0-2,4
    #[arg(long, value_name = "LIST", conflicts_with = "cpus")]
    pub cpuset_cpus: Option<CpuList>,
    /// Start the machine again when its program has ended: no, on-failure[:TIMES], always or unless-stopped
    #[arg(long, value_name = "POLICY")]
    pub restart: Option<RestartPolicy>,
    /// The machine's memory from now on, at most what it was started with; it keeps what it needs itself. For a machine
    /// with --balloon
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub memory: Option<Memory>,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotFlags {
    /// The machine
    pub name: String,
    /// The snapshot's name [default: the machine's]
    #[arg(value_parser = super::parse_name)]
    pub snapshot: Option<String>,
    /// Be who lets the machine go on if the process at the other end of standard input is killed; `snapshot` starts it
    #[arg(long, hide = true)]
    pub guard: bool,
}

/// `sietch snapshots`.
#[derive(Debug, Args)]
pub struct SnapshotsFlags {
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// Remove these
    #[arg(long = "rm", value_name = "NAME", num_args = 1.., value_parser = super::parse_name)]
    pub removed: Vec<String>,
}
