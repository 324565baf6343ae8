//! From flags to a machine.
//!
//! ```text
//! bypass.rs        the card or link of the program's own
//! start.rs         how the program starts: arguments, environment, user
//! cloud_init.rs    the program before it, in disks for clouds
//! etc.rs           what files tell of the machine and of others
//! command_line.rs  what the kernel is told
//! network.rs       the network and the address
//! folders.rs       folders of the host that the machine has
//! machine.rs       the machine itself: board, memory, disks
//! ```

mod bypass;
mod cloud_init;
mod command_line;
mod etc;
mod folders;
mod machine;
mod network;
mod start;

use std::path::Path;

use qemu::{CommandLine, Machine, Net};

use crate::failure::Failure;
use crate::flags::{
    Addition, CloudInit, EnvironmentFlags, NameFlags, ProgramFlags, RightsFlags, RunFlags,
};
use crate::networks;
use crate::oci::Container;
use crate::pack::{Image, Packed, RunFile};
use crate::preload;
use crate::stdio::Console;

pub use bypass::Bypass;
pub use command_line::with_epoch;
pub use machine::{image_path, machine};
pub(crate) use network::{
    USER_ADDRESS, USER_GATEWAY, USER_NAME_SERVER, USER_PREFIX_LEN, USER_SUBNET,
};
pub use network::{address, net};
pub(crate) use start::host_start;

use command_line::command_line;
use etc::{ZONE, etc_of, files, zone_file};
use start::run_file;

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
    /// What is in the image, unless the program is in a root of its own.
    pub packed: Option<Image>,
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
    /// Whom the machine asks before the program starts, in a disk for clouds.
    pub cloud_init: Option<CloudInit>,
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
            cloud_init: None,
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

    fn asked_of_cloud(&self) -> Option<CloudInit> {
        self.cloud_init.filter(|asked| *asked != CloudInit::None)
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
        crate::pack::etc::add(&mut packed.image, &etc_of(&hostname, around)?)?;
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
        let hints = match around.packs_nothing() {
            true => Vec::new(),
            false => hints(&run, &packed),
        };
        let (run, init) = match around.asked_of_cloud() {
            None => (run, packed.path.clone()),
            Some(asked) => {
                cloud_init::add_to(&mut packed)?;
                let run = cloud_init::in_front(run, &packed.path, asked);
                (run, cloud_init::IN_MACHINE.into())
            }
        };
        run.add_to(&mut packed.image);
        let mut command_line = command_line(flags, &init, &hostname, around);
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
            packed: (!around.packs_nothing()).then_some(packed.image),
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
