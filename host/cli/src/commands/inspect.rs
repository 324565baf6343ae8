//! `sietch inspect`: all that is known of machines, as JSON.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::flags::InspectFlags;
use crate::health::Health;
use crate::memory;
use crate::state::{Folder, Settings};

/// Runs the command.
pub fn inspect(flags: &InspectFlags) -> Result<u8, Failure> {
    let described = flags.names.iter().map(|name| {
        let folder = Folder::of(name);
        let settings = folder.settings();
        let settings = settings.ok_or_else(|| Failure::NoSuchMachine { name: name.clone() })?;
        Ok(describe(&folder, &settings))
    });
    let machines: Vec<Value> = described.collect::<Result<_, Failure>>()?;
    flags.output.show(&machines)?;
    Ok(0)
}

fn describe(folder: &Folder, settings: &Settings) -> Value {
    let state = settings.state();
    let runs = state == "running";
    let ended = (!runs).then(|| settings.status());
    json!({
        "name": settings.name,
        "command": settings.command,
        "state": {
            "status": state,
            "running": runs,
            "restarting": state == "restarting",
            "pid": if runs { settings.qemu_pid } else { 0 },
            "exit_code": ended,
            "started_s": settings.started_s,
            "ended_s": settings.ended.map(|ended| ended.at_s),
            "health": Health::read(folder.path()),
        },
        "restart_count": settings.restarts,
        "image": settings.image,
        "labels": settings.labels,
        "annotations": settings.annotations,
        "stop_signal": settings.stop_signal,
        "stop_timeout_s": settings.stop_timeout_s,
        "ports": settings.ports,
        "network": settings.network,
        "address": settings.address,
        "further_networks": settings.further_networks,
        "volumes": settings.volumes,
        "folders": folder.plan().map(|(machine, _)| machine.volumes),
        "memory_mib": settings.memory_mib,
        "memory_now_mib": if runs { memory::now_mib(folder) } else { None },
        "kernel": settings.kernel,
        "arguments": settings.arguments,
        "directory": settings.directory,
        "folder": folder.path(),
        "log": folder.console_log(),
    })
}
