//! The command line, in docker's vocabulary, parsed into types that prove it.

use std::ffi::OsString;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
mod size;
mod user;
mod volume;
mod volume_name;
mod when;

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
pub use net::{MacAddress, NetFlag, Publish};
pub use network::{
    NetworkCommand, NetworkConnectFlags, NetworkCreateFlags, NetworkFlags, NetworkInspectFlags,
    NetworkNamesFlags, ServeFlags, Subnet,
};
pub use output::{Form, InspectOutput, OutputFlags};
pub use rights::{RightsFlags, Ulimit};
pub use root::{Overlay, RootDisk, RootFlags};
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
        required = true,
        trailing_var_arg = true
    )]
    command: Vec<String>,
}

impl ProgramFlags {
    /// The program as typed.
    pub fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// The same with another program, and no arguments.
    #[must_use]
    pub fn with_program(mut self, program: &str) -> Self {
        self.command = vec![program.into()];
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

/// `sietch run`.
#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// Lead a port of the host into the machine
    #[arg(short = 'p', long = "publish", value_name = "[IP:]HOST:GUEST[/udp]")]
    pub publish: Vec<Publish>,
    /// Memory, such as 64M or 1G [default: 256M, more for large images; 1G with a root of its own]
    #[arg(short = 'm', long = "memory", value_name = "SIZE")]
    pub memory: Option<Memory>,
    /// Virtual CPUs; a machine has whole ones, so that 1.5 is 2
    #[arg(long, default_value_t = 1, value_parser = parse_cpus)]
    pub cpus: u8,
    /// NUMA nodes over which memory and CPUs are divided; q35 only
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub nodes: u8,
    /// Put all devices behind an IOMMU, so that each reaches only memory that is meant for it;
    /// q35 only
    #[arg(long)]
    pub iommu: bool,
    /// Give the program the network card: it moves its packets itself, and the kernel is in nobody's way;
    /// q35 only, implies --iommu. With --bypass=vnic it gets a link over the card, which processes that it forks
    /// share, and the kernel drives the card
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "card")]
    pub bypass: Option<BypassFlag>,
    /// Put the program's files of a pattern on a log: `write` and `fdatasync` are one write and one flush of the disk or the
    /// area then. `*` and `?` stand for all but slashes
    #[arg(long, value_name = "/PATTERN=/AREA", value_parser = parse_log)]
    pub log: Option<String>,
    /// The machine's name [default: the program's]
    #[arg(long, value_parser = parse_name)]
    pub name: Option<String>,
    /// Run in the background
    #[arg(short = 'd', long)]
    pub detach: bool,
    /// Go on from a snapshot (`sietch snapshot`), whose program, memory and devices the machine has
    #[arg(long, value_name = "SNAPSHOT", value_parser = parse_name, conflicts_with = "command")]
    pub from: Option<String>,
    /// Keep nothing of the machine when it has ended, not even its log
    #[arg(long)]
    pub rm: bool,
    /// Mount a volume by its name (`sietch volume`; made if it is not there), or a folder of the host by its path
    #[arg(
        short = 'v',
        long = "volume",
        value_name = "NAME|HOST:GUEST[:ro|:host]"
    )]
    pub volume: Vec<Mount>,
    /// Give the machine a file of the host as a disk: /dev/vda, then vdb and so on; by NVMe
    /// /dev/nvme0n1, then nvme0n2, or with vf=N that of a virtual function, for a program. With cache=unsafe the host takes no notice of flushes: for benchmarks
    #[arg(
        long,
        value_name = "FILE[,format=raw|qcow2][,bus=virtio|nvme[,vf=N]][,cache=unsafe][,ro]"
    )]
    pub disk: Vec<DiskFlag>,
    /// The same as -v and --tmpfs in docker's longer form
    #[arg(
        long,
        value_name = "type=bind|volume|tmpfs,source=...,target=...[,readonly]"
    )]
    pub mount: Vec<LongMount>,
    /// Say that the program listens at a port, for -P
    #[arg(long, value_name = "PORT[/udp]", value_parser = parse_exposed)]
    pub expose: Vec<String>,
    /// Lead a free port of the host to each port that the image, or --expose, names
    #[arg(short = 'P', long)]
    pub publish_all: bool,
    /// When the image is brought from where it comes from
    #[arg(long, value_enum, default_value_t)]
    pub pull: PullFlag,
    /// Try so often again if a registry does not answer
    #[arg(long, value_name = "TIMES", default_value_t = 0)]
    pub retry: u32,
    /// How long to wait between two tries [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub retry_delay: Option<Span>,
    /// Mount the volumes and folders of another machine, too
    #[arg(long, value_name = "NAME[:ro]")]
    pub volumes_from: Vec<String>,
    /// Show no progress of that
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Remove the image from the store when the machine has ended, unless another one has it
    #[arg(long)]
    pub rmi: bool,
    /// The root.
    #[command(flatten)]
    pub root: RootFlags,
    /// Restarts, the end, what is written down.
    #[command(flatten)]
    pub life: LifeFlags,
    /// Whether it is well.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Names.
    #[command(flatten)]
    pub names: NameFlags,
    /// Rights and limits.
    #[command(flatten)]
    pub rights: RightsFlags,
    /// Variables.
    #[command(flatten)]
    pub environment: EnvironmentFlags,
    /// What is so in any case.
    #[command(flatten)]
    pub habits: HabitFlags,
    /// Start another program than the image's entry point; "" none before the arguments
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["own_root", "add", "bypass", "log"])]
    pub entrypoint: Option<String>,
    /// How to execute instructions
    #[arg(long, value_enum, default_value_t)]
    pub accel: AccelFlag,
    /// The mainboard
    #[arg(long, value_enum, default_value_t)]
    pub machine: BoardFlag,
    /// The network: user, one of `sietch network`, tap=INTERFACE, dgram=OWN,PEER (Unix sockets) or none; several of
    /// `sietch network` if given more than once
    #[arg(long, visible_alias = "network", default_value = "user")]
    pub net: Vec<NetFlag>,
    /// Its names there.
    #[command(flatten)]
    pub network: NetworkFlags,
    /// The network card's address [default: QEMU's]
    #[arg(long, value_name = "MAC")]
    pub mac_address: Option<MacAddress>,
    /// The network card
    #[arg(long, value_enum, default_value_t)]
    pub nic: NicFlag,
    /// Add a word to the kernel's command line, for tests of the kernel
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_option)]
    pub kernel_option: Vec<(String, String)>,
    /// Profile the machine as long as it runs: FILE.svg is a flame graph, FILE.folded text,
    /// FILE.perf what `perf script` would print
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// With --profile: record what threads wait for, not what CPUs do
    #[arg(long, requires = "profile")]
    pub off_cpu: bool,
    /// Memory of each CPU for samples that nobody has read yet
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    pub profile_ring: u32,
    /// Write the image and print a command line that starts the machine without this command; do not start it
    #[arg(long)]
    pub dry_run: bool,
    /// With --dry-run: the line is for this virtual machine monitor
    #[arg(long, value_enum, default_value_t, requires = "dry_run")]
    pub vmm: VmmFlag,
    /// The program.
    #[command(flatten)]
    pub program: ProgramFlags,
}

impl RunFlags {
    /// What the words of a line ask for, which begins with `sietch run`.
    ///
    /// Errors: a sentence.
    pub fn of_line<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, String> {
        let parsed = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        match parsed.command {
            Command::Run(flags) => Ok(flags.settled()),
            _ => Err("the line is not `sietch run`".into()),
        }
    }
}

impl RunFlags {
    /// With docker's longer forms said in ours.
    #[must_use]
    pub fn settled(mut self) -> Self {
        for mount in self.mount.drain(..) {
            match mount {
                LongMount::Volume(mount) => self.volume.push(mount),
                LongMount::Memory(tmpfs) => self.root.tmpfs.push(tmpfs),
            }
        }
        self.root.settle();
        self
    }
}

/// `--pull`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PullFlag {
    /// Each time, what is not in the store yet
    Always,
    /// The same, by podman's name
    #[default]
    Newer,
    /// If the store has none of that name
    Missing,
    /// Not at all
    Never,
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
    /// The program by a flag, for one without arguments
    #[arg(long, value_name = "PROGRAM", conflicts_with = "command")]
    pub from: Option<String>,
    /// Make a container image of the store instead
    #[arg(short = 't', long, value_name = "NAME[:TAG]", conflicts_with_all = ["output", "format"])]
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

/// `PORT[/udp]`, as images say it.
fn parse_exposed(text: &str) -> Result<String, String> {
    let (port, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    match is_port && matches!(protocol, "tcp" | "udp") {
        true => Ok(format!("{port}/{protocol}")),
        false => Err("give PORT or PORT/udp".into()),
    }
}

fn parse_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !key.contains(' ') => {
            Ok((key.into(), value.into()))
        }
        _ => Err("give KEY=VALUE".into()),
    }
}

/// A machine's name is also the name of its folder.
fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.is_empty() || text.starts_with('.') || !text.chars().all(is_plain) {
        return Err("give letters, digits, '-', '_' and '.'".into());
    }
    Ok(text.into())
}

/// An absolute pattern and an absolute path.
fn parse_log(text: &str) -> Result<String, String> {
    let halves = text.rsplit_once('=');
    match halves.is_some_and(|(pattern, area)| pattern.starts_with('/') && area.starts_with('/')) {
        true => Ok(text.into()),
        false => Err("give /PATTERN=/AREA, as '/data/appendonlydir/*.incr.aof=/dev/vdb'".into()),
    }
}

#[cfg(test)]
mod tests;
