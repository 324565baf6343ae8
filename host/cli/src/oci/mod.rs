//! Programs that come as container images (`sietch run oci:FOLDER`): what the user typed becomes an image of the user's
//! store, its disk, and the words with which its program starts.
//!
//! A machine's root is the image's disk, which it only reads, below a layer in memory that takes what it writes: so any number of
//! machines share one disk, and the host's cache of it.
//!
//! | file | what |
//! |---|---|
//! | `store` | the user's store of images, and the tools and the terminal that it needs |
//! | `build` | a program of this host as an image |
//! | `start` | what an image and the command line together say of the program |

mod build;
mod start;
mod store;

use qemu::{CommandLine, Disk, DiskBus, DiskFormat, Machine};

use crate::failure::Failure;
use crate::flags::RunFlags;
use crate::volumes::{self, make_default, named, uuid_text};
pub use build::build;
pub use start::Start;
pub use store::{Choice, choose, fetch, of_user};

/// An image that is to be run, with its disk.
#[derive(Debug)]
pub struct Container {
    /// What a machine of it is called.
    pub name: String,
    /// The image's whole name.
    pub image: String,
    /// Its digest.
    pub image_id: String,
    /// What the image says of its program.
    pub process: images::Process,
    /// How its program starts.
    pub start: Start,
    root: images::Root,
}

impl Container {
    /// What `flags` name, if that is an image.
    ///
    /// Errors: what is wrong with the image, or with the flags beside it.
    pub fn of(flags: &RunFlags) -> Result<Option<Self>, Failure> {
        let Choice::Image(reference) = choose(flags)? else {
            return match flags.entrypoint {
                Some(_) => Err(Failure::NoEntryPoint),
                None => Ok(None),
            };
        };
        let store = of_user()?;
        let (name, image) = store::fetch_as(&store, &reference, flags)?;
        let root = store::root(&store, &image)?;
        let start = Start::new(flags, name.as_str(), &image.configuration.config, &root)?;
        Ok(Some(Self {
            name: name.short().into(),
            image: name.as_str().into(),
            image_id: image.id.to_string(),
            process: image.configuration.config.clone(),
            start,
            root,
        }))
    }

    /// Programs that we start from now on hold its disk, too: QEMU, and no other one, which may live longer.
    pub fn inherit(&self) -> Result<(), Failure> {
        Ok(self.root.inherit()?)
    }

    /// Programs that we start from now on do not.
    pub fn withhold(&self) -> Result<(), Failure> {
        Ok(self.root.withhold()?)
    }

    /// The number of a group of the image's, by `USER:GROUP`.
    pub fn group(&self, wanted: &str) -> Result<u32, Failure> {
        Ok(self.root.account(wanted)?.gid)
    }

    /// Makes the volumes that are not there for their place in the image: of its owner, as with docker.
    pub fn make_volumes(&self, flags: &RunFlags) -> Result<(), Failure> {
        for mount in &flags.volume {
            let Some(name) = named(mount) else {
                continue;
            };
            let store = volumes::Store::of_user()?;
            let volume = store.volume(name);
            if !volume.exists() && !flags.dry_run {
                make_default(&store, &volume, self.root.owner(&mount.guest)?)?;
            }
        }
        Ok(())
    }

    /// Tells the kernel where its root is, and that changes go to memory.
    pub fn told_to_kernel(&self, line: CommandLine) -> CommandLine {
        let uuid = uuid_text(&self.root.uuid());
        line.set("root", &format!("UUID={uuid}"))
            .set("overlay", "memory")
    }

    /// Gives the machine its disk: the first one.
    pub fn add_to(&self, machine: &mut Machine) {
        let disk = Disk {
            file: self.root.path().into(),
            format: DiskFormat::Raw,
            read_only: true,
            bus: DiskBus::Virtio,
            block_bytes: None,
            virtual_function: None,
            is_unsafe: false,
            trial: None,
        };
        machine.disks.insert(0, disk);
    }
}
