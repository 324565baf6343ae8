//! What to boot, and on what machine.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A machine before it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel: a PVH ELF of ours, or another system's for comparison.
    pub kernel: PathBuf,
    /// The root file system as a cpio archive.
    pub initrd: PathBuf,
    /// The kernel's command line.
    pub command_line: String,
    /// The mainboard.
    pub board: Board,
    /// How instructions are executed.
    pub accel: Accel,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual CPUs, 1 to 64.
    pub cpus: u8,
    /// NUMA nodes over which memory and CPUs are divided, 1 to 8; more than one needs
    /// [`Board::Q35`].
    pub nodes: u8,
    /// Whether devices reach memory only through an IOMMU; needs [`Board::Q35`].
    pub has_iommu: bool,
    /// Whether its memory can be changed while it runs ([`crate::set_balloon`]).
    #[serde(default)]
    pub has_balloon: bool,
    /// Whether the card is to be at [`CARD_OF_PROGRAM`]; needs [`Board::Q35`].
    pub is_card_for_program: bool,
    /// The network card.
    pub nic: Nic,
    /// The network card's station address; `None` for QEMU's own.
    pub mac: Option<[u8; 6]>,
    /// The network card's other end.
    pub net: Net,
    /// Further switches that the same card leads to, with [`Net::Switched`]; each calls at a socket of its own.
    #[serde(default)]
    pub further_switches: u8,
    /// Ports of the host that lead into the machine; with [`Net::User`] only.
    pub forwards: Vec<Forward>,
    /// Who leads those ports into the machine.
    pub forwarder: Forwarder,
    /// Folders of the host that the machine can mount.
    pub volumes: Vec<Volume>,
    /// Files of the host that are disks of the machine.
    pub disks: Vec<Disk>,
    /// How the program's input and output reach the host.
    pub stdio: Stdio,
    /// A plugin of QEMU's translator, with its arguments as `-plugin` takes them.
    pub plugin: Option<String>,
    /// The folder for the kernel's log and the sockets.
    pub state: PathBuf,
    /// Where it begins.
    #[serde(skip)]
    pub origin: Origin,
}

/// Where a machine begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// At its kernel's first instruction.
    #[default]
    Boot,
    /// Where another machine hands over to it; its memory is in this folder ([`crate::snapshot`]).
    Template(PathBuf),
    /// Where the snapshot in this folder was taken.
    Snapshot(PathBuf),
}

/// The hub between a card and what it leads to: switches, or its way out.
pub(crate) const CARDS_HUB: u8 = 2;
/// QEMU's user network, or its wire to passt.
pub(crate) const WAY_OUT: &str = "outside";

/// Where a card that is a program's sits on its bus.
pub const CARD_OF_PROGRAM: &str = "00:08.0";

impl Machine {
    /// Where the words of COM2 are kept.
    pub fn kernel_log(&self) -> PathBuf {
        self.state.join("kernel.log")
    }

    /// The socket that leads to COM2.
    pub fn control_socket(&self) -> PathBuf {
        self.state.join("control.sock")
    }

    /// Where a switch calls for the machine's card.
    pub fn card_socket(&self) -> PathBuf {
        self.state.join("card.sock")
    }

    /// Where the switch with that number calls; the first is that of [`Machine::card_socket`].
    pub fn socket_of_switch(&self, number: u8) -> PathBuf {
        match number {
            0 => self.card_socket(),
            number => self.state.join(format!("card{number}.sock")),
        }
    }

    /// Where a switch calls for the machine's way out, or QEMU for passt.
    pub fn way_out_socket(&self) -> PathBuf {
        self.state.join("net.sock")
    }

    /// Where QEMU calls for the folder with that tag, if virtiofsd serves it.
    pub fn folder_socket(&self, tag: &str) -> PathBuf {
        self.state.join(format!("{tag}.sock"))
    }

    /// Whether a program beside QEMU serves a folder, and so has to see the machine's memory.
    pub(crate) fn shares_memory(&self) -> bool {
        let mut servers = self.volumes.iter().map(|volume| volume.server);
        servers.any(|server| server == FolderServer::Virtiofsd)
    }

    /// The socket at which QEMU itself is asked.
    pub fn qmp_socket(&self) -> PathBuf {
        self.state.join("qmp.sock")
    }
}

/// How a program's standard input and output reach the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stdio {
    /// All through the first serial port, which any kernel can use.
    #[default]
    Serial,
    /// Each through a port of its own ([`crate::Streams`]).
    Ports,
}

/// QEMU's mainboards that we support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Board {
    /// A PC with PCI Express.
    #[default]
    Q35,
    /// A board with virtio over MMIO and little else.
    Microvm,
}

/// The user's wish for how instructions are executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Accel {
    /// KVM where the processor virtualises, else emulation.
    #[default]
    Auto,
    /// KVM or an error.
    Kvm,
    /// Emulation.
    Tcg,
    /// Emulation in which the time-stamp counter counts instructions; one CPU.
    TcgCounted,
    /// The same with several CPUs, which take turns: in a microsecond, of a thousand instructions,
    /// each that works executes its part. So what they do to each other is what they would on a
    /// host that runs all of them at all times, whatever this one does besides.
    TcgTurns,
    /// Emulation several times slower than need be: next to what its CPUs compute, devices
    /// and clients on the host cost little, as on a host with more CPUs.
    TcgSlow,
}

/// Network cards that we have drivers for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nic {
    /// The paravirtual one.
    #[default]
    Virtio,
    /// Intel's 82540EM, on a PCI bus.
    E1000,
    /// Intel's 82576, with a pair of queues for each CPU, on a PCI Express bus.
    Igb,
}

impl Nic {
    /// Whether the card reads only the first of several queues of its network.
    pub fn has_one_queue(self) -> bool {
        self == Self::E1000
    }
}

/// Where the network card leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Net {
    /// A network 10.0.2.0/24 with a gateway at .2 and a name server at .3, by QEMU itself or
    /// by passt ([`Forwarder`]).
    #[default]
    User,
    /// A tap interface of the host that exists already.
    Tap {
        /// Its name.
        interface: String,
    },
    /// Two Unix sockets of datagrams, one frame each.
    Datagrams {
        /// Where QEMU listens.
        local: PathBuf,
        /// Where it sends to.
        remote: PathBuf,
    },
    /// A switch between machines of this host, which calls at [`Machine::card_socket`], and for what is not on it at
    /// [`Machine::way_out_socket`].
    Switched(Switched),
    /// No card.
    None,
}

/// A machine's place on a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// The machine's address.
    pub address: Ipv4Addr,
    /// The network's first address.
    pub subnet: Ipv4Addr,
    /// How many bits of it are the network's.
    pub prefix_len: u8,
    /// Behind which the way out is.
    pub gateway: Ipv4Addr,
    /// Whom the machine asks for names.
    pub name_server: Ipv4Addr,
}

/// A port of the host that leads to a port of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forward {
    /// The address to listen at.
    pub host_ip: Ipv4Addr,
    /// The port to listen at.
    pub host_port: u16,
    /// The port in the machine.
    pub guest_port: u16,
    /// What to forward.
    pub protocol: Protocol,
}

/// Who leads ports of the host into a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forwarder {
    /// QEMU's user network: always there, but loses connections when there are many.
    #[default]
    Qemu,
    /// passt, a program of its own.
    Passt,
}

/// A protocol with ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A file of the host that the machine sees as a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The file.
    pub file: PathBuf,
    /// What is in it.
    pub format: DiskFormat,
    /// Whether the machine may only read it.
    pub read_only: bool,
    /// How the machine reaches it.
    pub bus: DiskBus,
    /// Bytes of a block, if not 512.
    pub block_bytes: Option<u32>,
    /// Of NVMe: the virtual function whose namespace it is, from 1; `None` for the machine's own.
    pub virtual_function: Option<u8>,
    /// Whether the host takes no notice of flushes: what the file has after the host fails is anybody's guess.
    pub is_unsafe: bool,
    /// What a test does with it.
    pub trial: Option<Trial>,
}

/// What a test does with a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trial {
    /// This sector can be neither read nor written.
    BadSector(u64),
    /// All writes and flushes are recorded in this empty file, as `dm-log-writes` does.
    Record(PathBuf),
    /// Requests fail as this file says, which is of QEMU's `blkdebug`.
    Faults(PathBuf),
}

/// How a machine reaches a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskBus {
    /// A virtio device of its own.
    #[default]
    Virtio,
    /// A namespace of the machine's one NVMe controller.
    Nvme,
}

/// How a file holds a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskFormat {
    /// Byte for byte.
    #[default]
    Raw,
    /// As QEMU's own format has it.
    Qcow2,
}

impl DiskFormat {
    /// QEMU's name for it.
    pub(crate) fn driver(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// A folder of the host that the machine sees live.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The folder.
    pub host: PathBuf,
    /// The name under which the device offers it.
    pub tag: String,
    /// Whether the machine may only read it.
    pub read_only: bool,
    /// Whose files they are.
    pub owners: Owners,
    /// Who serves it.
    #[serde(default)]
    pub server: FolderServer,
}

/// Who serves a folder of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FolderServer {
    /// QEMU, by 9P.
    #[default]
    #[serde(rename = "9p")]
    NineP,
    /// virtiofsd, a program of its own ([`crate::virtiofsd`]), by virtiofs; owners are the host's.
    #[serde(rename = "virtiofs")]
    Virtiofsd,
}

/// Where a volume's owners and modes stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owners {
    /// In the host's inodes. Only root can give a file to somebody else.
    Host,
    /// In extended attributes beside them (QEMU's `mapped-xattr`): what a host's ordinary
    /// user cannot do to inodes, the machine can still do. Files without such attributes
    /// show the host's.
    Attributes,
}

impl Owners {
    /// QEMU's name for it.
    pub(crate) fn security_model(self) -> &'static str {
        match self {
            Owners::Host => "none",
            Owners::Attributes => "mapped-xattr",
        }
    }
}
