//! `sietch build`: writes what another virtual machine monitor needs to boot.

use std::fs;

use qemu::Net;

use crate::failure::Failure;
use crate::flags::BuildFlags;
use crate::kernel_file;
use crate::machine_plan::{Plan, Surroundings, image_path};

/// Runs the command.
pub fn build(flags: &BuildFlags) -> Result<u8, Failure> {
    let kernel = kernel_file::find()?;
    let around = Surroundings {
        net: Net::User,
        ..Surroundings::default()
    };
    let plan = Plan::new(&flags.program, &around)?;
    let folder = &flags.output;
    fs::create_dir_all(folder).map_err(Failure::file(folder))?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).map_err(Failure::file(path))
    };
    let line = plan.command_line.into_string();
    write("command-line", line.as_bytes())?;
    let image = image_path(folder);
    fs::write(&image, &plan.image).map_err(Failure::file(&image))?;
    let copy = folder.join("sietch-kernel");
    fs::copy(kernel, &copy).map_err(Failure::file(&copy))?;
    println!(
        "{0}/sietch-kernel is a PVH kernel: boot it with {0}/image.cpio as initrd and the words in {0}/command-line.",
        folder.display()
    );
    Ok(0)
}
