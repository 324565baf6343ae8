//! `restore`

use clap::Args;

use crate::keep::Root;
use crate::{World, ask};

#[derive(Args)]
pub struct Flags {
    #[command(flatten)]
    root: Root,
}

/// Does what it can; what fails is complained about, and the rest goes on.
pub fn run(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut failed = 0;
    for record in flags.root.load()? {
        let request = record.clone().request();
        let done = request.map_err(|why| why.to_string());
        let done = done.and_then(|request| ask::ask(world.kernel, &request));
        if let Err(why) = done {
            world
                .console
                .complain(&format!("dladm: {record:?}: {why}\n"));
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(format!("{failed} records could not be restored")),
    }
}
