//! `sietch version`: which one this is, and with what it runs machines.

use qemu::Qemu;
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::OutputFlags;
use crate::kernel_file;

/// The fields are those of `--output json`.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    qemu_version: Option<u32>,
    kernel: Option<String>,
}

/// Runs the command.
pub fn version(output: &OutputFlags) -> Result<u8, Failure> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        qemu_version: Qemu::find().and_then(|qemu| qemu.major()).ok(),
        kernel: kernel_file::find()
            .ok()
            .map(|path| path.display().to_string()),
    };
    output.one(&version, |version| {
        println!("sietch {}", version.version);
        if let Some(major) = version.qemu_version {
            println!("QEMU {major}");
        }
        if let Some(kernel) = &version.kernel {
            println!("kernel {kernel}");
        }
    })?;
    Ok(0)
}
