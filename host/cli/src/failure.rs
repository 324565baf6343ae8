//! Why a command fails: each a sentence with the way out.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use crate::copy_error::CopyError;
use crate::pack::PackError;
use crate::refused::ExecRefused;

/// Exit status when the command itself fails, as docker has it.
const OWN_FAILURE: u8 = 125;
/// Exit status when the program is there but is none, as shells have it.
const NOT_A_PROGRAM: u8 = 126;
/// Exit status when there is no such program, as shells have it.
const NOT_FOUND: u8 = 127;

/// What keeps a command from being done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program cannot be packed.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The image cannot be had.
    #[error(transparent)]
    Image(#[from] images::Error),
    /// The machine does not start.
    #[error(transparent)]
    Qemu(#[from] qemu::Error),
    /// No kernel to boot.
    #[error("The kernel is not built ({} is missing): run `make kernel`.", path.display())]
    NoKernel {
        /// Where it should be.
        path: PathBuf,
    },
    /// A port of the host is in use.
    #[error(
        "Port {port} is taken by {holder}: choose another, such as -p {suggestion}:{guest_port}."
    )]
    PortTaken {
        /// The port.
        port: u16,
        /// Who holds it.
        holder: String,
        /// A free one.
        suggestion: u16,
        /// Where it leads.
        guest_port: u16,
    },
    /// The image does not fit into the machine.
    #[error(
        "There is not enough memory for the image: it takes {image_mib} MiB and the machine has {memory_mib}, so use -m {enough_mib}M or more."
    )]
    ImageTooLarge {
        /// What the image takes.
        image_mib: u32,
        /// What the machine has.
        memory_mib: u32,
        /// What would do.
        enough_mib: u32,
    },
    /// A PCI card for a board without PCI.
    #[error("The board microvm has no PCI slot for this card: use --machine q35.")]
    NoPciSlot,
    /// A PCI disk for a board without PCI.
    #[error("The board microvm has no PCI slot for NVMe (bus=nvme): use --machine q35.")]
    NoPciDisk,
    /// Nodes for a board that describes none.
    #[error("The board microvm is always one node: use --machine q35.")]
    NoNodes,
    /// An IOMMU for a board that has none.
    #[error("The board microvm has no IOMMU: use --machine q35.")]
    NoIommu,
    /// A folder that virtiofsd serves, on a machine with an IOMMU, which it knows nothing of.
    #[error(
        "virtiofsd does not know the IOMMU of --iommu and --bypass: leave :virtiofs out, and QEMU serves the folder."
    )]
    NoVirtiofsBehindIommu,
    /// `--bypass` with a card that programs have no driver for.
    #[error("Programs have no driver for the card e1000: use --nic virtio or --nic igb.")]
    NoBypassOfCard,
    /// `--bypass` without an address.
    #[error(
        "The program on the card needs an address of its own: give --ip ADDRESS/LENGTH[,GATEWAY]."
    )]
    NoBypassAddress,
    /// `--bypass` without the library.
    #[error(
        "The library is not built ({} is missing): run `cargo build --release -p sietch`.",
        path.display()
    )]
    NoLibrary {
        /// Where it should be.
        path: PathBuf,
    },
    /// No program that reads what a cloud says.
    #[error(
        "The program that reads a cloud's seed is not built ({} is missing, or is not static): run `make cloud-init`, or build the disk with --cloud-init none.",
        path.display()
    )]
    NoCloudInit {
        /// Where it should be.
        path: PathBuf,
    },
    /// A folder's machine is told by whoever boots it.
    #[error(
        "A folder's machine is told its name and address by its command line: leave --cloud-init out, or choose another --format."
    )]
    NoCloudInitInFolder,
    /// `--bypass` of a program that loads no libraries.
    #[error(
        "{} is statically linked and makes its system calls itself: run it without --bypass, on the kernel's sockets.",
        path.display()
    )]
    StaticProgram {
        /// The program.
        path: PathBuf,
    },
    /// `--entrypoint` of a program.
    #[error("A program of this host has no entry point: give its path, and arguments behind it.")]
    NoEntryPoint,
    /// `-u` of nobody.
    #[error("-u cannot be followed: {reason}.")]
    NoSuchUser {
        /// Why not.
        reason: String,
    },
    /// A path of the host that a flag names does not exist.
    #[error("{} does not exist on this host: correct the path after {flag}.", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
        /// The flag that named it.
        flag: &'static str,
    },
    /// Two machines of one name.
    #[error(
        "A machine called {name} runs already: choose another --name, or `sietch stop {name}`."
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No machine of that name.
    #[error("No machine is called {name}: `sietch ps` lists those that run.")]
    NoSuchMachine {
        /// The name.
        name: String,
    },
    /// A machine that runs cannot be removed.
    #[error("The machine {name} runs: `sietch stop {name}` first, or `sietch rm -f {name}`.")]
    StillRuns {
        /// Its name.
        name: String,
    },
    /// A machine that nobody can enter.
    #[error(
        "The machine {name} takes no commands: it has no agent, or its `sietch run` has ended."
    )]
    NoAgent {
        /// Its name.
        name: String,
    },
    /// A command does not start in a machine.
    #[error(transparent)]
    ExecRefused(ExecRefused),
    /// `-it` without a terminal.
    #[error("Standard input is no terminal: leave -t out.")]
    NoTerminal,
    /// `--cpuset-cpus` of none that we have.
    #[error(
        "None of the CPUs of --cpuset-cpus may be used: `nproc` and `taskset -p $$` show those that may."
    )]
    NoSuchCpus,
    /// `--cidfile` of another machine.
    #[error("{} is there already: remove it, or choose another file after --cidfile.", path.display())]
    CidfileExists {
        /// The file.
        path: PathBuf,
    },
    /// A single file that is to be written to.
    #[error(
        "{} is a file, which a machine gets as a copy: add :ro, or mount its folder.",
        path.display()
    )]
    FileNotReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// A group that nobody knows.
    #[error("--group-add cannot be followed: {reason}.")]
    NoSuchGroup {
        /// Why not.
        reason: String,
    },
    /// A time zone that this host does not have.
    #[error(
        "This host has no time zone {zone}: `timedatectl list-timezones` lists those there are (Debian's tzdata)."
    )]
    NoSuchZone {
        /// What was typed.
        zone: String,
    },
    /// A flag of docker's that we do not have.
    #[error("{0}")]
    RefusedFlag(String),
    /// A flag beside `--from` that would do nothing.
    #[error(
        "A machine that goes on from a snapshot has its program and devices already, so --from takes no {flag}: leave one of them out."
    )]
    NotWithFrom {
        /// The flag.
        flag: String,
    },
    /// `--restart` without `-d`.
    #[error("--restart is for machines in the background: add -d.")]
    RestartInForeground,
    /// A file of defaults that says something else.
    #[error("{} has a line that is none: {line}. Give FLAG = VALUE with one of memory, cpus, accel, machine, net, nic, pull, stop-timeout or tz.", path.display())]
    BadConfiguration {
        /// The file.
        path: PathBuf,
        /// The line.
        line: String,
    },
    /// `sietch man` of nothing.
    #[error("sietch has no command {name}: `sietch --help` lists those there are.")]
    NoSuchCommand {
        /// What was typed.
        name: String,
    },
    /// A template that cannot be followed.
    #[error("{0}")]
    BadFormat(String),
    /// A filter that cannot be followed.
    #[error(
        "{0} is no filter: give KEY=VALUE with one of name, status, label, exited, health or ancestor."
    )]
    BadFilter(String),
    /// `--pull never` of an image that is not there.
    #[error("The store has no image {name}, and --pull never brings none: `sietch pull` does.")]
    NotPulled {
        /// Its name.
        name: String,
    },
    /// No such signal.
    #[error("{name} is no signal: give a number from 1 to 64, or a name such as TERM.")]
    NoSuchSignal {
        /// What was typed.
        name: String,
    },
    /// A machine that cannot be profiled.
    #[error("The machine {name} cannot be profiled: {reason}.")]
    NoProfile {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// A machine in the background that ended before it was up.
    #[error("The machine {name} did not start: {reason}")]
    DidNotStart {
        /// Its name.
        name: String,
        /// What it said.
        reason: String,
    },
    /// A folder of ours that somebody else has made.
    #[error(
        "{} belongs to somebody else, or is a link: set XDG_RUNTIME_DIR to a folder that is only yours.",
        path.display()
    )]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// No snapshot of that name.
    #[error("No snapshot is called {name}: `sietch snapshots` lists those there are.")]
    NoSuchSnapshot {
        /// The name.
        name: String,
    },
    /// What a snapshot cannot hold.
    #[error("No snapshot can be taken of {name}, since it has {obstacle}: run it without.")]
    NoSnapshot {
        /// The machine.
        name: String,
        /// What it has.
        obstacle: &'static str,
    },
    /// A snapshot whose disk is gone.
    #[error(
        "The snapshot {name} needs {}, which is gone: bring the image back (`sietch pull`), or take it again.",
        path.display()
    )]
    SnapshotWithoutDisk {
        /// The snapshot.
        name: String,
        /// The disk.
        path: PathBuf,
    },
    /// A snapshot that another version wrote, or that the host's disk has damaged.
    #[error(
        "The snapshot {name} cannot be read: remove it with `sietch snapshots --rm {name}`, and take it again."
    )]
    BadSnapshot {
        /// The snapshot.
        name: String,
    },
    /// Nowhere to keep data.
    #[error("There is no folder to keep data in: set HOME, or XDG_DATA_HOME to an absolute path.")]
    NoDataFolder,
    /// No volume of that name.
    #[error("No volume is called {name}: `sietch volume ls` lists those there are.")]
    NoSuchVolume {
        /// The name.
        name: String,
    },
    /// Two volumes of one name.
    #[error(
        "A volume called {name} is there already: choose another name, or `sietch volume rm {name}` and lose what it holds."
    )]
    VolumeExists {
        /// The name.
        name: String,
    },
    /// A machine has it.
    #[error("The volume {name} is used by the machine {machine}: `sietch stop {machine}` first.")]
    VolumeInUse {
        /// The volume.
        name: String,
        /// The machine.
        machine: String,
    },
    /// Somebody who is not listed has it.
    #[error("The volume {name} is used by another process: wait until that has ended.")]
    VolumeLocked {
        /// The volume.
        name: String,
    },
    /// It holds no whole file system.
    #[error(
        "The volume {name} is damaged: copy its file, then `sietch volume fsck --repair {name}` saves what can be saved."
    )]
    VolumeDamaged {
        /// The volume.
        name: String,
    },
    /// It could not be filled.
    #[error(
        "There is not enough room for {size} in {}: {free} are free, so use a smaller --size, or set XDG_DATA_HOME to a folder elsewhere.",
        folder.display()
    )]
    NoRoom {
        /// Where volumes are kept.
        folder: PathBuf,
        /// What was asked for.
        size: String,
        /// What is left.
        free: String,
    },
    /// A new volume is too small for what it is to hold.
    #[error("{} takes {takes}: use --size {enough}M or more.", path.display())]
    FolderTooLarge {
        /// The folder.
        path: PathBuf,
        /// What it takes.
        takes: String,
        /// MiB that would do.
        enough: u64,
    },
    /// What a volume is to be filled from is no folder.
    #[error("{} is not a folder of this host: correct the path after --from.", path.display())]
    NoSuchFolder {
        /// The path.
        path: PathBuf,
    },
    /// `--root-disk` of a file that is no root.
    #[error(
        "{} holds no ext4 file system from its first byte on: make one with `sietch volume create NAME --from FOLDER` and give its name.",
        path.display()
    )]
    NoRootFileSystem {
        /// The file.
        path: PathBuf,
    },
    /// Two disks that the machine could not tell apart.
    #[error(
        "{} and {} have the same UUID, so the machine cannot tell them apart: `tune2fs -U random` gives one of them its own.",
        one.display(),
        other.display()
    )]
    TwinDisks {
        /// One.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// No such network.
    #[error("There is no network {name}: `sietch network create {name}` makes it.")]
    NoSuchNetwork {
        /// Its name.
        name: String,
    },
    /// A network whose description cannot be read.
    #[error(
        "What is known of the network {name} is damaged: `sietch network rm {name}` removes it, and `sietch network create {name}` makes it anew."
    )]
    NetworkDamaged {
        /// Its name.
        name: String,
    },
    /// A network that is there already.
    #[error("There is a network {name} already.")]
    NetworkThere {
        /// Its name.
        name: String,
    },
    /// A network whose addresses another one has.
    #[error("{subnet} overlaps with the network {other}: choose another --subnet.")]
    NetworkOverlaps {
        /// What was asked for.
        subnet: String,
        /// Who has it.
        other: String,
    },
    /// A network that machines are on.
    #[error("The network {name} is used by {}: stop them first.", users.join(", "))]
    NetworkUsed {
        /// Its name.
        name: String,
        /// The machines.
        users: Vec<String>,
    },
    /// A network's switch takes the machine not in.
    #[error("{sentence}")]
    NotJoined {
        /// Why, a sentence.
        sentence: String,
    },
    /// A network's switch does not start.
    #[error("The switch of the network {name} does not start: {reason}.")]
    NoSwitch {
        /// The network's name.
        name: String,
        /// Why.
        reason: io::Error,
    },
    /// A compose file that cannot be read or done.
    #[error("{sentence}")]
    Compose {
        /// Why, a sentence.
        sentence: String,
    },
    /// `sietch update --memory` for a machine that was started without a balloon.
    #[error(
        "The memory of the machine {name} cannot be changed while it runs, as it has no balloon: use `sietch stop {name}`, and `sietch run` with --balloon, or with another -m."
    )]
    MemoryIsFixed {
        /// The machine.
        name: String,
    },
    /// `sietch update --memory` with more than the machine was started with.
    #[error(
        "The machine {name} was started with {memory_mib} MiB, and gets more only at its start: use `sietch stop {name}`, and `sietch run` with another -m."
    )]
    TooLittleMemory {
        /// The machine.
        name: String,
        /// What it was started with.
        memory_mib: u32,
    },
    /// `sietch update --memory`, and QEMU does not do it.
    #[error("The memory of the machine {name} is not changed, as QEMU does not do it: {reason}.")]
    BalloonRefused {
        /// The machine.
        name: String,
        /// QEMU's words.
        reason: io::Error,
    },
    /// `sietch update` without a change.
    #[error(
        "`sietch update` changes nothing without a flag: give --cpus, --cpuset-cpus, --memory or --restart."
    )]
    NoUpdate,
    /// `sietch update --cpus` with more than the machine has.
    #[error(
        "The machine {name} has {cpus} virtual CPUs, and gets more only at its start: use `sietch stop {name}`, and `sietch run` with another --cpus."
    )]
    TooFewCpus {
        /// The machine.
        name: String,
        /// Those that it has.
        cpus: u8,
    },
    /// `sietch update --restart` for a machine that nobody could start again.
    #[error(
        "The machine {name} runs in the foreground, and ends with the command that keeps it: only one that was started with -d is started again."
    )]
    NotInBackground {
        /// The machine.
        name: String,
    },
    /// `sietch update --restart` for a machine of which nothing is kept.
    #[error(
        "The machine {name} was started with --rm, so that nothing of it is kept from which it could be started again: use `sietch stop {name}`, and `sietch run` without --rm."
    )]
    RemovedAtItsEnd {
        /// The machine.
        name: String,
    },
    /// A machine without /proc.
    #[error(
        "The machine {name} has no /proc that says what runs in it: mount it there, as a Linux system does."
    )]
    NoProc {
        /// The machine.
        name: String,
    },
    /// An option of ps' that `top` does not have.
    #[error(
        "`sietch top` has no {0}: give columns by ps' names, such as -o pid,ppid,user,time,rss,args."
    )]
    NoPsOption(String),
    /// Files that are not copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// `--ip ADDRESS` without a network that it is of.
    #[error("--ip {address} names no network: give ADDRESS/LENGTH[,GATEWAY], or --network NAME.")]
    NoPrefix {
        /// The address.
        address: String,
    },
    /// A flag that is not for machines on a network.
    #[error("{flag} does not go with a network of `sietch network`, which says that itself.")]
    NotOnNetwork {
        /// The flag.
        flag: &'static str,
    },
    /// Several networks, of which not all are of `sietch network`.
    #[error(
        "A machine is on several networks only if all are of `sietch network`: give no other --network."
    )]
    SeveralNetworks,
    /// A machine that is to leave a network on which it is not.
    #[error(
        "{machine} is not on the network {network}: `sietch inspect {machine}` says where it is."
    )]
    NotOnThatNetwork {
        /// The machine.
        machine: String,
        /// The network.
        network: String,
    },
    /// A machine that is to join a network on which it is.
    #[error("{machine} is on the network {network} already.")]
    OnThatNetwork {
        /// The machine.
        machine: String,
        /// The network.
        network: String,
    },
    /// A machine that runs and does not do what its networks ask for.
    #[error("{machine} is not {what}: {reason}. {way}")]
    LinkNotChanged {
        /// The machine.
        machine: String,
        /// `connected to NETWORK`, or `disconnected from` it.
        what: String,
        /// In words, without their end.
        reason: String,
        /// The way out, a sentence.
        way: &'static str,
    },
    /// What the session of a machine says of its networks, a sentence.
    #[error("{0}")]
    OfSession(String),
    /// More networks than a card leads to.
    #[error(
        "A machine is on {max} networks at most: take it from one of them, or give fewer --network."
    )]
    TooManyNetworks {
        /// So many.
        max: usize,
    },
    /// `--network-alias` alone.
    #[error("--network-alias is a name on a network: give --network NAME too.")]
    AliasWithoutNetwork,
    /// What volumes are made with is not installed.
    #[error(
        "{name} is missing, and volumes are made and checked with it: install e2fsprogs (Debian's name)."
    )]
    NoFileSystemTools {
        /// The program.
        name: String,
    },
    /// What boot images are made with is not installed.
    #[error("Boot images are made with GRUB and its helpers: install {packages} (Debian's names).")]
    NoImageTools {
        /// The packages that are missing.
        packages: String,
    },
    /// Another monitor cannot have such a machine.
    #[error("{vmm} has no {what}: {way}.")]
    VmmLacks {
        /// The monitor.
        vmm: &'static str,
        /// What it has not.
        what: &'static str,
        /// The way out.
        way: &'static str,
    },
    /// A tool that makes boot images fails.
    #[error("{name} failed: {said}.")]
    ImageTool {
        /// The tool.
        name: String,
        /// Its last words.
        said: String,
    },
    /// The host's disk is full.
    #[error("There is no room left for {}: free some there.", path.display())]
    DiskFull {
        /// What is to be written.
        path: PathBuf,
    },
    /// A file that the user's limits do not allow.
    #[error(
        "{} would be larger than files may be here: `ulimit -f unlimited` lifts that limit.",
        path.display()
    )]
    FileTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A file of ours that cannot be read or written.
    #[error("{} cannot be used: {source}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The machine was started and then lost.
    #[error("QEMU was lost: {0}.")]
    Lost(#[source] io::Error),
}

impl Failure {
    /// Wraps an I/O error with the path that it befell.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::DiskFull { path },
            ErrorKind::FileTooLarge => Self::FileTooLarge { path },
            _ => Self::File { path, source },
        }
    }

    /// The command's exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::ExecRefused(refused) => refused.status(),
            Self::Pack(PackError::ProgramNotFound { .. }) => NOT_FOUND,
            Self::Pack(PackError::NotAProgram { .. } | PackError::WrongArchitecture { .. }) => {
                NOT_A_PROGRAM
            }
            _ => OWN_FAILURE,
        }
    }
}
