//! `sietch build`: writes what another virtual machine monitor, or a PC, needs to boot.

use std::fs;
use std::path::Path;

use images::Name;
use qemu::Net;

use crate::bootable::{self, Parts};
use crate::failure::Failure;
use crate::flags::{BuildFlags, CloudInit, ImageFormat, Ip, ProgramFlags};
use crate::kernel_file;
use crate::machine_plan::{GuestConfig, Plan, image_path};
use crate::oci;

/// Runs the command.
pub fn build(flags: &BuildFlags) -> Result<u8, Failure> {
    let program = match &flags.from {
        Some(program) => flags.program.clone().with_program(program),
        None => flags.program.clone(),
    };
    let Some(output) = &flags.output else {
        let name: Name = flags.tag.as_deref().unwrap_or_default().parse()?;
        let image = oci::build(&name, &program)?;
        println!("{name} {}", image.id);
        return Ok(0);
    };
    let kernel = kernel_file::find()?;
    let plan = plan(flags.format, flags.cloud_init, program)?;
    plan.hints
        .iter()
        .for_each(|hint| eprintln!("sietch: {hint}"));
    match flags.format {
        ImageFormat::Folder => write_folder(plan, &kernel, output)?,
        format => write_image(format, plan, &kernel, output)?,
    }
    Ok(0)
}

/// A PC asks its network for an address; a monitor's network is mostly QEMU's.
fn plan(
    format: ImageFormat,
    cloud_init: Option<CloudInit>,
    mut program: ProgramFlags,
) -> Result<Plan, Failure> {
    let (net, cloud_init) = match format {
        ImageFormat::Folder if cloud_init.is_some() => return Err(Failure::NoCloudInitInFolder),
        ImageFormat::Folder => (Net::User, None),
        ImageFormat::Iso | ImageFormat::Raw | ImageFormat::Qcow2 | ImageFormat::Vhd => {
            program.ip.get_or_insert(Ip::Automatic);
            (Net::None, Some(cloud_init.unwrap_or_default()))
        }
    };
    let around = GuestConfig {
        net,
        cloud_init,
        ..GuestConfig::default()
    };
    Plan::new(&program, &around)
}

fn write_folder(plan: Plan, kernel: &Path, folder: &Path) -> Result<(), Failure> {
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
        "{0}/sietch-kernel is a PVH and multiboot2 kernel: boot it with {0}/image.cpio as initrd and the words in {0}/command-line.",
        folder.display()
    );
    Ok(())
}

fn write_image(
    format: ImageFormat,
    plan: Plan,
    kernel: &Path,
    output: &Path,
) -> Result<(), Failure> {
    let parts = Parts {
        name: &plan.name,
        kernel,
        archive: &plan.image,
        command_line: &plan.command_line.into_string(),
    };
    match format {
        ImageFormat::Iso => bootable::write_iso(&parts, output)?,
        ImageFormat::Qcow2 => bootable::write_qcow2(&parts, output)?,
        ImageFormat::Vhd => bootable::write_vhd(&parts, output)?,
        ImageFormat::Raw | ImageFormat::Folder => bootable::write_raw(&parts, output)?,
    }
    println!(
        "{} boots by BIOS and UEFI; the program's input and output are at the first serial port.",
        output.display()
    );
    Ok(())
}
