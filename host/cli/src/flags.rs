//! The command line, in docker's vocabulary, parsed into types that prove it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod cloud_init;
mod compose;
mod detach_keys;
mod disk;
mod environment;
mod exec;
pub mod from;
mod habits;
mod hardware;
mod health;
mod ip;
mod life;
mod lifecycle;
mod mount;
mod names;
mod net;
mod network;
mod output;
pub mod refused;
mod rights;
mod root;
mod run;
mod size;
mod user;
mod volume;
mod volume_name;
mod when;

pub use cloud_init::CloudInit;
pub use compose::{ComposeCommand, ComposeFlags};
pub use detach_keys::DetachKeys;
pub use disk::DiskFlag;
pub use environment::EnvironmentFlags;
pub use exec::{AttachFlags, CpFlags, ExecFlags, KillFlags};
pub use habits::HabitFlags;
pub use hardware::{AccelFlag, BoardFlag, BypassFlag, Memory, NicFlag, VmmFlag};
pub use health::{HealthFlags, OnUnhealthy, Span};
pub use ip::Ip;
pub use life::{CpuList, LifeFlags, RestartPolicy};
pub use lifecycle::{
    EventsFlags, InspectFlags, LogsFlags, MachinesFlags, PortFlags, PsFlags, RenameFlags, RmFlags,
    SnapshotFlags, SnapshotsFlags, StatsFlags, TopFlags, UpdateFlags,
};
pub use mount::LongMount;
pub use names::{HostEntry, NameFlags};
pub use net::{MacAddress, NetFlag, OnNetwork, Publish};
pub use network::{
    NetworkCommand, NetworkConnectFlags, NetworkCreateFlags, NetworkDisconnectFlags, NetworkFlags,
    NetworkInspectFlags, NetworkNamesFlags, ServeFlags, Subnet,
};
pub use output::{Form, InspectOutput, OutputFlags};
pub use rights::{RightsFlags, Ulimit};
pub use root::{Overlay, RootDisk, RootFlags};
pub use run::{PullFlag, RunFlags};
pub use size::ByteSize;
pub(crate) use size::told;
pub use user::User;
pub use volume::{
    CreateFlags, FsckFlags, Mount, MountSource, NamesFlags, VolumeCommand, VolumeInspectFlags,
};
pub use volume_name::VolumeName;
pub use when::{When, timestamp};

/// Runs unmodified Linux programs on Sietch, each in a virtual machine of its own.
#[derive(Debug, Parser)]
#[command(name = "sietch", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Pack a program of this host and run it in a machine
    Run(Box<RunFlags>),
    /// Write kernel and image for another virtual machine monitor, an image that a PC boots, or a container image
    Build(Box<BuildFlags>),
    /// List the machines that run
    Ps(PsFlags),
    /// Show what a machine's program wrote
    Logs(LogsFlags),
    /// Run a command in a machine that runs
    Exec(ExecFlags),
    /// Show what a machine's program writes from now on, and type for it
    Attach(AttachFlags),
    /// Copy files between this host and a machine that runs
    Cp(CpFlags),
    /// Send a signal to machines' programs
    Kill(KillFlags),
    /// End machines
    Stop(StopFlags),
    /// End machines and start them again, in the background
    Restart(StopFlags),
    /// Wait until machines have ended, and print their exit statuses
    Wait(MachinesFlags),
    /// Remove what is kept of machines that have ended
    Rm(RmFlags),
    /// Print all that is known of machines, as JSON
    Inspect(InspectFlags),
    /// Give a machine that has ended another name
    Rename(RenameFlags),
    /// Change how many CPUs machines that run may use, or whether they are started again
    Update(UpdateFlags),
    /// Show the processes of a machine
    Top(TopFlags),
    /// Show what machines use of this host
    Stats(StatsFlags),
    /// Show what happens to machines
    Events(EventsFlags),
    /// Print which ports of the host lead into a machine
    Port(PortFlags),
    /// Keep a machine as it is now, for others to go on from (`sietch run --from`)
    Snapshot(SnapshotFlags),
    /// List snapshots, or remove some
    Snapshots(SnapshotsFlags),
    /// Draw what a machine's CPUs do, or what its threads wait for
    Profile(ProfileFlags),
    /// Show who wakes a machine's threads, and how long they slept, while it happens
    Wakeups(WakeupsFlags),
    /// Make, list, inspect, check and remove volumes: disks that outlive machines
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Make, list, inspect and remove networks: machines of one reach each other by name
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Start, end and show machines that belong together, of a compose.yaml
    Compose(ComposeFlags),
    /// List the container images of the store
    Images(OutputFlags),
    /// Bring container images into the store
    Pull(PullFlags),
    /// Remove container images from the store
    Rmi(RmiFlags),
    /// Check this host and say what is missing
    Doctor(OutputFlags),
    /// Print which version this is, and with what it runs machines
    Version(OutputFlags),
    /// Print a manual page, or write all of them into a folder
    Man(ManualFlags),
    /// Print what a shell reads to complete sietch's lines, as `sietch completions bash > FILE`
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// What to put into the image and how to start it.
#[derive(Clone, Debug, Args)]
pub struct ProgramFlags {
    /// Set an environment variable; NAME alone takes the host's value
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// The program's working folder [default: the image's, or /]
    #[arg(short = 'w', long = "workdir", value_name = "FOLDER")]
    pub folder: Option<String>,
    /// Run the program as this user, by number or by name [default: the image's, or root]
    #[arg(short = 'u', long = "user", value_name = "USER[:GROUP]")]
    pub user: Option<String>,
    /// Copy a file or folder of the host into the image
    #[arg(long, value_name = "HOST:GUEST")]
    pub add: Vec<Addition>,
    /// The machine's address: ADDRESS/LENGTH[,GATEWAY], dhcp or none; on a network of `sietch network` an ADDRESS of it
    #[arg(long, value_name = "IP")]
    pub ip: Option<Ip<Ipv4Addr>>,
    /// Its IPv6 address: ADDRESS/LENGTH[,GATEWAY], auto (of routers' prefixes) or none
    /// [default: auto]
    #[arg(long, value_name = "IP6")]
    pub ip6: Option<Ip<Ipv6Addr>>,
    /// Show the program's system calls on standard error
    #[arg(long)]
    pub strace: bool,
    /// For teaching: give the kernel the bug of "The Case of the Clumsy Kernel"
    /// (docs/clumsy-kernel.md)
    #[arg(long)]
    pub clumsy: bool,
    /// The program on this host, a path or a name to search; or an image: oci:FOLDER[:TAG], oci-archive:FILE,
    /// docker-archive:FILE, docker://HOST/NAME[:TAG], or one that `sietch images` lists; and its arguments
    #[arg(
        value_name = "PROGRAM [ARGS]",
        // `run --from` has its program in a snapshot, and `build --from` names it.
        required_unless_present = "from",
        trailing_var_arg = true
    )]
    command: Vec<String>,
}

impl ProgramFlags {
    /// The program as typed.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// The same with that program, whose arguments the words are.
    #[must_use]
    pub fn with_program(mut self, program: &str) -> Self {
        self.command.insert(0, program.into());
        self
    }

    /// The program's arguments.
    pub fn arguments(&self) -> &[String] {
        self.command.get(1..).unwrap_or(&[])
    }

    /// The program with its arguments.
    pub fn command(&self) -> &[String] {
        &self.command
    }
}

/// `sietch pull`.
#[derive(Debug, Args)]
pub struct PullFlags {
    /// The form.
    #[command(flatten)]
    pub output: OutputFlags,
    /// Where they are: oci:FOLDER[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME] or
    /// docker://HOST/NAME[:TAG]
    #[arg(required = true, value_name = "IMAGE")]
    pub references: Vec<String>,
}

/// `sietch rmi`.
#[derive(Debug, Args)]
pub struct RmiFlags {
    /// Their names, or the first digits of their IDs
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,
}

/// `sietch build`.
#[derive(Clone, Debug, Args)]
pub struct BuildFlags {
    /// What to write
    #[arg(long, value_enum, default_value_t)]
    pub format: ImageFormat,
    /// The folder or file to write
    #[arg(
        short = 'o',
        long = "output",
        value_name = "PATH",
        required_unless_present = "tag"
    )]
    pub output: Option<PathBuf>,
    /// What a disk's or ISO's machine asks before the program starts [default: seed]
    #[arg(long, value_enum, value_name = "WHOM")]
    pub cloud_init: Option<CloudInit>,
    /// The program by a flag: the words behind the flags are its arguments, behind -- if the first of them begins with a dash
    #[arg(long, value_name = "PROGRAM")]
    pub from: Option<String>,
    /// Make a container image of the store instead
    #[arg(short = 't', long, value_name = "NAME[:TAG]", conflicts_with_all = ["output", "format", "cloud_init"])]
    pub tag: Option<String>,
    /// The program.
    #[command(flatten)]
    pub program: ProgramFlags,
}

/// `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ImageFormat {
    /// A folder: a PVH kernel, the image as its initrd, and its command line
    #[default]
    Folder,
    /// An ISO that boots by BIOS and UEFI, from a CD or a disk
    Iso,
    /// A disk that boots by BIOS and UEFI
    Raw,
    /// The same as a file of QEMU's format, without what is zero
    Qcow2,
    /// The same as a VHD of fixed size, as Azure takes it
    Vhd,
}

/// `sietch man`.
#[derive(Debug, Args)]
pub struct ManualFlags {
    /// The folder for all pages, such as /usr/local/share/man/man1
    #[arg(short = 'o', long, value_name = "FOLDER", conflicts_with = "command")]
    pub output: Option<PathBuf>,
    /// The command, such as run [default: sietch itself]
    pub command: Option<String>,
}

/// `sietch stop`.
#[derive(Debug, Args)]
pub struct StopFlags {
    /// Seconds until the machine is ended by force [default: --stop-timeout of its start, or 10]
    #[arg(short = 't', long = "time", visible_alias = "timeout")]
    pub seconds: Option<u64>,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch profile`.
#[derive(Debug, Args)]
pub struct ProfileFlags {
    /// How long to record
    #[arg(short = 's', long, default_value_t = 5.0)]
    pub seconds: f64,
    /// The file to write, - for standard output [default: NAME.svg, .folded or .perf]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write folded stacks: a line each, for other tools
    #[arg(long, conflicts_with = "perf_script")]
    pub folded: bool,
    /// Write what `perf script` would print
    #[arg(long)]
    pub perf_script: bool,
    /// Record what threads wait for and who wakes them, not what CPUs do
    #[arg(long)]
    pub off_cpu: bool,
    /// The machine
    pub name: String,
}

/// `sietch wakeups`.
#[derive(Debug, Args)]
pub struct WakeupsFlags {
    /// Leave out waits that were shorter than so many milliseconds
    #[arg(short = 'l', long, value_name = "MS", default_value_t = 0.0)]
    pub least: f64,
    /// How long to watch [default: until interrupted]
    #[arg(short = 's', long)]
    pub seconds: Option<f64>,
    /// The machine
    pub name: String,
}

/// `--add`: `host:guest`, or one path for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The path on the host.
    pub host: PathBuf,
    /// The path in the image.
    pub guest: PathBuf,
}

impl FromStr for Addition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, guest) = text.rsplit_once(':').unwrap_or((text, text));
        if host.is_empty() || !guest.starts_with('/') {
            return Err("give HOST:GUEST with an absolute path after the colon".into());
        }
        Ok(Self {
            host: host.into(),
            guest: guest.into(),
        })
    }
}

fn parse_cpus(text: &str) -> Result<u8, String> {
    const CPUS_MAX: f64 = 64.0;
    let cpus = text.parse::<f64>().ok().map(f64::ceil);
    let cpus = cpus.filter(|cpus| (1.0..=CPUS_MAX).contains(cpus));
    // Whole and within its range.
    cpus.map(|cpus| cpus as u8)
        .ok_or_else(|| "give a number up to 64".into())
}

/// A machine's name is also the name of its folder.
fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.starts_with('.') || !text.chars().all(is_plain) {
        return Err("give letters, digits, '-', '_' and '.'".into());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests;
