//! One machine from its boot to its end.

use std::path::Path;

use bench_pair::run_alone;
use qemu::Accel;

use crate::load::OUTPUT;

/// Has a machine run the shell's line; what it wrote.
pub fn run(cpus: u8, files: &[String], script: &str) -> Result<String, String> {
    let (cpus, line) = (cpus.to_string(), format!("export CPUS={cpus}; {script}"));
    let mut args = vec!["-m", "1G", "--cpus", &cpus];
    for file in files {
        args.extend(["--add", file]);
    }
    args.extend(["busybox", "sh", "-c", &line]);
    run_alone(Path::new(OUTPUT), &args, |machine| {
        machine.accel = Accel::Tcg
    })
    .map_err(|why| format!("`{script}`: {why}"))
}
