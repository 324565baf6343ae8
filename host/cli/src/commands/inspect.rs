//! `sietch inspect`: all that is known of machines, as JSON.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::MachinesFlags;
use crate::state::{Folder, Settings};

/// Runs the command.
pub fn inspect(flags: &MachinesFlags) -> Result<u8, Failure> {
    let described = flags.names.iter().map(|name| {
        let folder = Folder::of(name);
        let settings = folder.settings();
        let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.clone() })?;
        Ok(describe(&folder, &settings))
    });
    let machines: Vec<Value> = described.collect::<Result<_, Failure>>()?;
    println!("{:#}", Value::from(machines));
    Ok(0)
}

fn describe(folder: &Folder, settings: &Settings) -> Value {
    let runs = settings.is_served();
    let ended = (!runs).then(|| settings.status());
    json!({
        "name": settings.name,
        "command": settings.command,
        "state": {
            "status": if runs { "running" } else { "exited" },
            "running": runs,
            "pid": if runs { settings.qemu_pid } else { 0 },
            "exit_code": ended,
            "started_s": settings.started_s,
            "ended_s": settings.ended.map(|ended| ended.at_s),
        },
        "ports": settings.ports,
        "volumes": settings.volumes,
        "memory_mib": settings.memory_mib,
        "kernel": settings.kernel,
        "folder": folder.path(),
        "log": folder.console_log(),
    })
}
