//! `sietch run`: what a machine is made of, how it lives, and what runs in it. What belongs together has flags of its own in
//! the modules beside this one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use super::{
    AccelFlag, BoardFlag, BypassFlag, Cli, Command, DiskFlag, EnvironmentFlags, HabitFlags,
    HealthFlags, LifeFlags, LongMount, MacAddress, Memory, Mount, NameFlags, NetFlag, NetworkFlags,
    NicFlag, ProgramFlags, Publish, RightsFlags, RootFlags, Span, VmmFlag, parse_cpus, parse_name,
};

/// `sietch run`.
#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// Lead a port of the host into the machine
    #[arg(short = 'p', long = "publish", value_name = "[IP:]HOST:GUEST[/udp]")]
    pub publish: Vec<Publish>,
    /// Memory, such as 64M or 1G [default: 256M, more for large images; 1G with a root of its own]
    #[arg(short = 'm', long = "memory", value_name = "SIZE")]
    pub memory: Option<Memory>,
    /// Let `sietch update -m` take memory from the machine while it runs, and give it back, at most what -m says;
    /// such a machine has no snapshots
    #[arg(long)]
    pub balloon: bool,
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
    /// The network: user, NAME[:ip=ADDRESS,alias=NAME] of `sietch network`, tap=INTERFACE, dgram=OWN,PEER (Unix sockets) or
    /// none; several of `sietch network` if given more than once
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

/// `PORT[/udp]`, as images say it.
fn parse_exposed(text: &str) -> Result<String, String> {
    let (port, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    match is_port && matches!(protocol, "tcp" | "udp") {
        true => Ok(format!("{port}/{protocol}")),
        false => Err("give PORT or PORT/udp".into()),
    }
}

/// `KEY=VALUE`, a word for the kernel.
pub(super) fn parse_option(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !key.contains(' ') => {
            Ok((key.into(), value.into()))
        }
        _ => Err("give KEY=VALUE".into()),
    }
}

/// An absolute pattern and an absolute path.
fn parse_log(text: &str) -> Result<String, String> {
    let halves = text.rsplit_once('=');
    match halves.is_some_and(|(pattern, area)| pattern.starts_with('/') && area.starts_with('/')) {
        true => Ok(text.into()),
        false => Err("give /PATTERN=/AREA, as '/data/appendonlydir/*.incr.aof=/dev/vdb'".into()),
    }
}
