//! How the program starts: its arguments, environment, folder and user.

use std::env;

use crate::failure::Failure;
use crate::flags::{ProgramFlags, User};
use crate::oci::Start;
use crate::pack::{Packed, RunFile, profiles};
use crate::preload;

use super::{Bypass, GuestConfig};

/// How the program starts: as its image says, or as programs of the host do.
pub(super) fn run_file(
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
