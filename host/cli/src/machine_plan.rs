//! From flags to a machine: the image, the kernel's command line, the devices.

use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use qemu::{
    Accel, Board, CommandLine, Disk, DiskBus, Machine, Net, Nic, Origin, Owners, PROFILE_START,
    PROFILE_START_WAITS, Stdio, Volume,
};

use crate::bypass::Bypass;
use crate::failure::Failure;
use crate::flags::{
    AccelFlag, Addition, BoardFlag, BypassFlag, DiskFlag, EnvironmentFlags, Ip, MountSource,
    NameFlags, NetFlag, NicFlag, ProgramFlags, RightsFlags, RunFlags, User,
};
use crate::kernel_file;
use crate::networks;
use crate::oci::{Container, Start};
use crate::pack::etc::{self, Etc};
use crate::pack::{Packed, RunFile, profiles};
use crate::preload;
use crate::stdio::Console;

/// Memory of a machine whose image leaves room in it.
const MEMORY_MIB: u32 = 256;
/// Of one with a root of its own, in which any program may be. The host gives what is used only, and a program
/// that needs more says so at once (PostgreSQL, a Java server and RabbitMQ need up to 600 MiB).
const MEMORY_OF_ROOT_MIB: u32 = 1024;
/// What kernel and program need at the least, beside the image.
const MEMORY_BESIDE_IMAGE_MIB: u32 = 12;
/// The device that has the folder which is the root.
const ROOT_TAG: &str = "root";
/// The addresses of the user network.
const USER_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const USER_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
const USER_NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
const USER_PREFIX_LEN: u8 = 24;

/// A program packed and ready to boot.
#[derive(Debug)]
pub struct Plan {
    /// The image as a cpio archive.
    pub image: Vec<u8>,
    /// The kernel's command line.
    pub command_line: CommandLine,
    /// The program's name without folders.
    pub name: String,
    /// How the program's input and output reach us.
    pub console: Console,
    /// Hints for the user.
    pub hints: Vec<String>,
    /// Whether the program is in a root of its own, and not in the image.
    pub has_own_root: bool,
}

/// What surrounds the program besides its own flags.
#[derive(Debug, Default)]
pub struct GuestConfig {
    /// Where the network card leads.
    pub net: Net,
    /// The machine's name; the program's if not given.
    pub hostname: Option<String>,
    /// Other names, and who is asked for them.
    pub names: NameFlags,
    /// What the program may do.
    pub rights: RightsFlags,
    /// Its environment.
    pub environment: EnvironmentFlags,
    /// Single files of the host, and where copies of them are in the machine.
    pub files: Vec<Addition>,
    /// How the program's input and output reach us.
    pub console: Console,
    /// Whether the program is in a root of its own, and not to be packed.
    pub has_own_root: bool,
    /// The image that is run, and not a program of the host.
    pub container: Option<Container>,
    /// Whether the card is the program's.
    pub bypass: Option<Bypass>,
    /// Which of the program's files are on a log: the library's variable.
    pub log: Option<String>,
    /// The networks with other machines, which give it addresses when its machine has a name.
    pub networks: Vec<switch::Network>,
}

impl GuestConfig {
    /// What `flags` say of it.
    pub fn of(flags: &RunFlags) -> Result<Self, Failure> {
        Ok(Self {
            net: net(flags),
            hostname: flags.names.hostname.clone().or(flags.name.clone()),
            names: flags.names.clone(),
            rights: flags.rights.clone(),
            environment: flags.environment.clone(),
            files: files(flags)?,
            console: Console::default(),
            has_own_root: flags.root.is_own(),
            container: Container::of(flags)?,
            bypass: Bypass::of(flags)?,
            log: flags.log.clone(),
            networks: networks::of(flags)?,
        })
    }

    /// Whether the program is where its root is.
    fn packs_nothing(&self) -> bool {
        self.has_own_root || self.container.is_some()
    }

    /// Gives the machine the disk of its image.
    pub fn add_to(&self, machine: &mut Machine) {
        if let Some(container) = &self.container {
            container.add_to(machine);
        }
    }

    fn has_library(&self) -> bool {
        self.bypass.is_some() || self.log.is_some()
    }
}

impl Plan {
    /// Packs the program that `flags` name.
    pub fn new(flags: &ProgramFlags, around: &GuestConfig) -> Result<Self, Failure> {
        let mut packed = packed(flags, around)?;
        let hostname = around
            .hostname
            .clone()
            .unwrap_or_else(|| packed.name.clone());
        etc::add(&mut packed.image, &etc_of(&hostname, around)?)?;
        let zone = zone_file(around)?;
        if let Some(zone) = &zone {
            packed.image.add(zone, Path::new(ZONE))?;
        }
        packed.add_all(&flags.add)?;
        packed.add_all(&around.files)?;
        if let Some(bypass) = &around.bypass {
            bypass.add_to(&mut packed);
        }
        if around.has_library() {
            preload::add_to(&mut packed)?;
        }
        let run = run_file(flags, &packed, &hostname, around)?;
        run.add_to(&mut packed.image);
        let hints = match around.packs_nothing() {
            true => Vec::new(),
            false => hints(&run, &packed),
        };
        let mut command_line = command_line(flags, &packed.path, &hostname, around);
        if around.packs_nothing() {
            let files = around.files.iter().map(|file| file.guest.as_path());
            for path in files.chain(zone.iter().map(|_| Path::new(ZONE))) {
                command_line = command_line.set("cover", &path.to_string_lossy());
            }
        }
        let command_line = match &around.container {
            Some(container) => container.told_to_kernel(command_line),
            None => command_line,
        };
        let image = packed.image.to_cpio()?;
        Ok(Self {
            image,
            command_line,
            name: packed.name,
            console: around.console,
            hints,
            has_own_root: around.packs_nothing(),
        })
    }
}

fn packed(flags: &ProgramFlags, around: &GuestConfig) -> Result<Packed, Failure> {
    Ok(match &around.container {
        Some(container) => Packed {
            name: container.name.clone(),
            ..Packed::nothing(container.start.program())
        },
        None if around.has_own_root => Packed::nothing(flags.program()),
        None => Packed::new(flags.program())?,
    })
}

/// How the program starts: as its image says, or as programs of the host do.
fn run_file(
    flags: &ProgramFlags,
    packed: &Packed,
    hostname: &str,
    around: &GuestConfig,
) -> Result<RunFile, Failure> {
    let start = match &around.container {
        Some(container) => container.start.clone(),
        None => host_start(flags, packed)?,
    };
    let mut environment = start.environment;
    environment.push(format!("HOSTNAME={hostname}"));
    environment = around.environment.left_of(environment);
    environment.extend(around.environment.further()?);
    let console = around.console;
    if console.has_terminal() {
        environment.extend(env::var("TERM").map(|term| format!("TERM={term}")));
    }
    environment.extend(around.has_library().then(preload::variable));
    environment.extend(around.bypass.iter().flat_map(Bypass::environment));
    let log = around.log.iter();
    environment.extend(log.map(|log| format!("SIETCH_LOG={log}")));
    for variable in &flags.env {
        if variable.contains('=') {
            environment.push(variable.clone());
        } else {
            environment.extend(env::var(variable).map(|value| format!("{variable}={value}")));
        }
    }
    Ok(RunFile {
        arguments: start.arguments,
        environment: without_repeats(environment),
        folder: start.folder,
        user: start.user,
        groups: groups(around)?,
        rights: around.rights.clone(),
        console,
    })
}

/// The numbers of `--group-add`: an image's groups are its own.
fn groups(around: &GuestConfig) -> Result<Vec<u32>, Failure> {
    let number = |name: &String| {
        // Of a user whom each root has only the group is asked for.
        let wanted = format!("0:{name}");
        match &around.container {
            Some(container) => Ok(container.group(&wanted)?),
            None => match wanted.parse::<User>() {
                Ok(user) => Ok(user.gid),
                Err(reason) => Err(Failure::NoSuchGroup { reason }),
            },
        }
    };
    around.rights.group_add.iter().map(number).collect()
}

/// Where programs look for the time zone.
const ZONE: &str = "/etc/localtime";

/// The file of `--tz`.
fn zone_file(around: &GuestConfig) -> Result<Option<PathBuf>, Failure> {
    let Some(zone) = &around.names.tz else {
        return Ok(None);
    };
    let path = match zone.as_str() {
        "local" => PathBuf::from(ZONE),
        zone => Path::new("/usr/share/zoneinfo").join(zone),
    };
    let has_climbed = zone.starts_with('/') || zone.split('/').any(|part| part == "..");
    let path = std::fs::canonicalize(path)
        .ok()
        .filter(|path| path.is_file());
    match path.filter(|_| !has_climbed) {
        Some(path) => Ok(Some(path)),
        None => Err(Failure::NoSuchZone { zone: zone.clone() }),
    }
}

/// What files below /etc tell of the machine and of others.
fn etc_of(hostname: &str, around: &GuestConfig) -> Result<Etc, Failure> {
    let names = &around.names;
    let of_user_network = || (around.net == Net::User).then_some(USER_NAME_SERVER);
    let of_network = around.networks.first().map(switch::Network::name_server);
    let usual = of_network.or_else(of_user_network).map(IpAddr::from);
    let servers = match names.dns.is_empty() {
        true => usual.into_iter().collect(),
        false => names.dns.clone(),
    };
    let hosts = names.add_host.iter().map(|entry| {
        let address = entry.address.unwrap_or(USER_GATEWAY.into());
        (address, entry.names.join(" "))
    });
    let lines = match &names.hosts_file {
        Some(path) => std::fs::read_to_string(path).map_err(Failure::file(path))?,
        None => String::new(),
    };
    Ok(Etc {
        hostname: hostname.into(),
        domain: names.domainname.clone(),
        servers,
        searched: names.dns_search.clone(),
        options: names.dns_option.clone(),
        hosts: hosts.collect(),
        lines,
        has_hostname: !names.no_hostname,
        is_alone: names.no_hosts,
    })
}

/// Single files of `-v`, which a machine gets as copies.
fn files(flags: &RunFlags) -> Result<Vec<Addition>, Failure> {
    let mut files = Vec::new();
    for mount in &flags.volume {
        match &mount.source {
            MountSource::Folder { path, .. } if path.is_file() => {
                if !mount.read_only {
                    return Err(Failure::FileNotReadOnly { path: path.clone() });
                }
                files.push(Addition {
                    host: path.clone(),
                    guest: PathBuf::from(&mount.guest),
                });
            }
            _ => {}
        }
    }
    Ok(files)
}

/// Of a variable that is set twice the last value counts, which not all programs know.
fn without_repeats(environment: Vec<String>) -> Vec<String> {
    let name = |variable: &str| variable.split('=').next().unwrap_or("").to_string();
    let mut kept: Vec<String> = Vec::new();
    for variable in environment {
        let same = kept.iter().position(|other| name(other) == name(&variable));
        match same.and_then(|at| kept.get_mut(at)) {
            Some(earlier) => *earlier = variable,
            None => kept.push(variable),
        }
    }
    kept
}

/// How a program of the host starts.
pub(crate) fn host_start(flags: &ProgramFlags, packed: &Packed) -> Result<Start, Failure> {
    let mut arguments = vec![flags.program().to_string()];
    if flags.arguments().is_empty() {
        let defaults = profiles::default_arguments(&packed.name);
        arguments.extend(defaults.iter().map(ToString::to_string));
    }
    arguments.extend(flags.arguments().iter().cloned());
    let user = flags.user.as_deref().map(str::parse::<User>).transpose();
    let user = user.map_err(|reason| Failure::NoSuchUser { reason })?;
    let home = user.as_ref().map_or("/root", |user| &user.home);
    Ok(Start {
        arguments,
        environment: vec![
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_string(),
            format!("HOME={home}"),
        ],
        folder: flags.folder.clone().unwrap_or_else(|| "/".into()),
        user: user.map(|user| (user.uid, user.gid)),
        exposed: Vec::new(),
    })
}

/// Arguments that name files which are on the host only are a common slip.
fn hints(run: &RunFile, packed: &Packed) -> Vec<String> {
    let files = run
        .arguments
        .iter()
        .skip(1)
        .filter(|argument| Path::new(argument).is_file());
    let on_host_only = files.filter(|argument| {
        let guest = Path::new(&run.folder).join(argument);
        packed.image.resolve(&guest).is_none()
    });
    on_host_only
        .map(|argument| {
            let guest = Path::new(&run.folder).join(argument);
            format!(
                "{argument} is a file of this host and not in the image: add it with --add {argument}:{}.",
                guest.display()
            )
        })
        .collect()
}

/// The machine's address.
pub fn address(flags: &ProgramFlags, net: &Net) -> Ip<Ipv4Addr> {
    flags.ip.clone().unwrap_or(match net {
        Net::User => Ip::Static {
            address: USER_ADDRESS,
            prefix_len: USER_PREFIX_LEN,
            gateway: Some(USER_GATEWAY),
        },
        Net::Tap { .. } | Net::Datagrams { .. } | Net::Switched(_) => Ip::Automatic,
        Net::None => Ip::None,
    })
}

fn command_line(
    flags: &ProgramFlags,
    init: &Path,
    hostname: &str,
    around: &GuestConfig,
) -> CommandLine {
    let ip = match around.bypass {
        Some(_) => Ip::None,
        None => address(flags, &around.net),
    };
    let line = CommandLine::new()
        .set("init", &init.to_string_lossy())
        .set("hostname", hostname);
    let line = match around.networks.is_empty() {
        false => line,
        true => line.set("ip", &ip.to_string()),
    };
    let line = match around.networks.len() > 1 && around.packs_nothing() {
        true => line.set("cover", &format!("/{}", networks::LINKS_FILE)),
        false => line,
    };
    let line = match &around.names.domainname {
        Some(domain) => line.set("domainname", domain),
        None => line,
    };
    let line = match &flags.ip6 {
        Some(ip) => line.set("ip6", &ip.to_string()),
        None => line,
    };
    let line = match &around.bypass {
        Some(bypass) if bypass.is_of_card() => line.set("vfio", qemu::CARD_OF_PROGRAM),
        _ => line,
    };
    let switches = [("strace", flags.strace), ("clumsy", flags.clumsy)];
    let are_on = switches.into_iter().filter(|(_, is_on)| *is_on);
    are_on.fold(line, |line, (name, _)| line.set(name, "1"))
}

/// Adds the host's wall clock, read as late as possible.
pub fn with_epoch(line: CommandLine) -> CommandLine {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    line.set(
        "epoch",
        &format!("{}.{:09}", now.as_secs(), now.subsec_nanos()),
    )
}

/// The network that `flags` ask for.
pub fn net(flags: &RunFlags) -> Net {
    match flags.first_net() {
        // Its switch says the rest once the machine has a name.
        NetFlag::User | NetFlag::Network(_) => Net::User,
        NetFlag::Tap(interface) => Net::Tap {
            interface: interface.clone(),
        },
        NetFlag::Datagrams { local, remote } => Net::Datagrams {
            local: local.clone(),
            remote: remote.clone(),
        },
        NetFlag::None => Net::None,
    }
}

/// Tells the kernel to profile from the boot on, if the user wants it, and how large its rings are.
fn profiled(line: CommandLine, flags: &RunFlags) -> CommandLine {
    let ring_bytes = u64::from(flags.profile_ring) << 10;
    let line = line.set("profile_ring", &ring_bytes.to_string());
    let request = match (&flags.profile, flags.off_cpu) {
        (None, _) => return line,
        (Some(_), true) => PROFILE_START_WAITS,
        (Some(_), false) => PROFILE_START,
    };
    line.set("profile", &char::from(request).to_string())
}

/// Tells the kernel which virtual function of the NVMe controller has which namespace.
fn with_virtual_functions(line: CommandLine, disks: &[DiskFlag]) -> CommandLine {
    let namespaces = disks.iter().filter(|disk| disk.bus == DiskBus::Nvme);
    let owned = (1..).zip(namespaces);
    let owned = owned.filter_map(|(number, disk)| Some((number, disk.virtual_function?)));
    let owned: Vec<(u32, u8)> = owned.collect();
    let Some(count) = owned.iter().map(|(_, function)| function).max() else {
        return line;
    };
    let pairs = owned
        .iter()
        .map(|(number, function)| format!("{number}:{function}"));
    line.set("nvme.max_vfs", &count.to_string())
        .set("nvme.attach", &pairs.collect::<Vec<_>>().join(","))
}

/// Whether the board has what is asked for.
fn check_board(flags: &RunFlags) -> Result<(), Failure> {
    if flags.machine != BoardFlag::Microvm {
        return Ok(());
    }
    let has_nvme = flags.disk.iter().any(|disk| disk.bus == DiskBus::Nvme);
    match flags {
        _ if flags.nic != NicFlag::Virtio => Err(Failure::NoPciSlot),
        _ if flags.nodes > 1 => Err(Failure::NoNodes),
        _ if flags.iommu => Err(Failure::NoIommu),
        _ if has_nvme => Err(Failure::NoPciDisk),
        _ => Ok(()),
    }
}

/// The machine that boots `plan`, with its files in the folder `state`.
pub fn machine(flags: &RunFlags, plan: &Plan, state: &Path) -> Result<Machine, Failure> {
    check_board(flags)?;
    let mut command_line = profiled(plan.command_line.clone(), flags);
    command_line = with_virtual_functions(command_line, &flags.disk);
    for (key, value) in &flags.kernel_option {
        command_line = command_line.set(key, value);
    }
    if flags.root.read_only {
        command_line = command_line.set("ro", "1");
    }
    for tmpfs in flags.root.tmpfs() {
        command_line = command_line.mount_tmpfs(&tmpfs.options, &tmpfs.guest);
    }
    let (command_line, volumes) = folders(flags, command_line)?;
    let forwards: Vec<_> = flags.publish.iter().map(|publish| publish.0).collect();
    let is_card_for_program = flags.bypass == Some(BypassFlag::Card);
    Ok(Machine {
        kernel: kernel_file::find()?,
        initrd: image_path(state),
        command_line: with_epoch(command_line).into_string(),
        board: match flags.machine {
            BoardFlag::Q35 => Board::Q35,
            BoardFlag::Microvm => Board::Microvm,
        },
        accel: match flags.accel {
            AccelFlag::Auto => Accel::Auto,
            AccelFlag::Kvm => Accel::Kvm,
            AccelFlag::Tcg => Accel::Tcg,
            AccelFlag::TcgCounted => Accel::TcgCounted,
        },
        memory_mib: memory_mib(flags, plan)?,
        cpus: flags.cpus,
        nodes: flags.nodes,
        has_iommu: flags.iommu || is_card_for_program,
        is_card_for_program,
        nic: match flags.nic {
            NicFlag::Virtio => Nic::Virtio,
            NicFlag::E1000 => Nic::E1000,
            NicFlag::Igb => Nic::Igb,
        },
        mac: flags.mac_address.map(|mac| mac.0),
        net: net(flags),
        further_switches: 0,
        forwarder: qemu::passt::forwarder(&net(flags), &forwards),
        forwards,
        volumes,
        disks: disks(flags)?,
        stdio: match plan.console {
            Console::Serial { .. } => Stdio::Serial,
            Console::Streams(_) => Stdio::Ports,
        },
        plugin: None,
        state: state.into(),
        origin: Origin::Boot,
    })
}

/// The folders of the host that `flags` share with the machine, of which its kernel is told.
fn folders(
    flags: &RunFlags,
    mut command_line: CommandLine,
) -> Result<(CommandLine, Vec<Volume>), Failure> {
    let mut volumes = Vec::new();
    if let Some(path) = flags.root.folder() {
        command_line = command_line.set("root", &format!("9P={ROOT_TAG}"));
        volumes.push(root_folder(path)?);
    }
    for (number, mount) in flags.volume.iter().enumerate() {
        let MountSource::Folder { path, host_owners } = &mount.source else {
            continue;
        };
        if path.is_file() {
            continue;
        }
        let host = std::fs::canonicalize(path).map_err(|_| Failure::NoSuchPath {
            path: path.clone(),
            flag: "-v",
        })?;
        let tag = format!("volume{number}");
        command_line = command_line.mount_9p(&tag, &mount.guest, mount.read_only);
        volumes.push(Volume {
            owners: owners(mount.read_only || *host_owners, &host),
            host,
            tag,
            read_only: mount.read_only,
        });
    }
    Ok((command_line, volumes))
}

/// The folder that is the root: it is only read, and owners are the host's.
fn root_folder(path: &Path) -> Result<Volume, Failure> {
    let host = std::fs::canonicalize(path).ok();
    let host = host.filter(|host| host.is_dir());
    Ok(Volume {
        host: host.ok_or_else(|| Failure::NoSuchPath {
            path: path.into(),
            flag: "--rootfs",
        })?,
        tag: ROOT_TAG.into(),
        read_only: true,
        owners: Owners::Host,
    })
}

/// The disks that `flags` ask for.
fn disks(flags: &RunFlags) -> Result<Vec<Disk>, Failure> {
    let disk = |disk: &DiskFlag| {
        let file = std::fs::canonicalize(&disk.file).map_err(|_| Failure::NoSuchPath {
            path: disk.file.clone(),
            flag: "--disk",
        })?;
        Ok(Disk {
            file,
            format: disk.format,
            read_only: disk.read_only,
            bus: disk.bus,
            block_bytes: disk.block_bytes,
            virtual_function: disk.virtual_function,
            is_unsafe: disk.is_unsafe,
            trial: disk.trial.clone(),
        })
    };
    flags.disk.iter().map(disk).collect()
}

/// Where owners are kept: a host's ordinary user cannot give a file to anybody else, so
/// beside the inodes, where the folder's file system takes attributes.
fn owners(are_plain: bool, host: &Path) -> Owners {
    let takes_attributes = || {
        let asked = rustix::fs::getxattr(host, "user.virtfs.uid", &mut [0u8; 4][..]);
        !matches!(asked, Err(Errno::NOTSUP))
    };
    let is_plain = are_plain || rustix::process::geteuid().is_root();
    match !is_plain && takes_attributes() {
        true => Owners::Attributes,
        false => Owners::Host,
    }
}

/// Where a machine's image lies in its folder.
pub fn image_path(state: &Path) -> PathBuf {
    state.join("image.cpio")
}

/// The machine's memory: the user's wish if the image fits, or enough for the image.
fn memory_mib(flags: &RunFlags, plan: &Plan) -> Result<u32, Failure> {
    let image_mib = u32::try_from(plan.image.len().div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let enough_mib = image_mib.saturating_add(MEMORY_BESIDE_IMAGE_MIB);
    match flags.memory {
        Some(memory) if memory.mib < enough_mib => Err(Failure::ImageTooLarge {
            image_mib,
            memory_mib: memory.mib,
            enough_mib,
        }),
        Some(memory) => Ok(memory.mib),
        None if plan.has_own_root => Ok(MEMORY_OF_ROOT_MIB.max(enough_mib)),
        None => Ok(MEMORY_MIB.max(image_mib.saturating_mul(2).saturating_add(128))),
    }
}
