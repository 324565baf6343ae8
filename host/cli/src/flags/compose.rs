//! `sietch compose`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::parse_name;

/// `sietch compose`.
#[derive(Debug, Args)]
pub struct ComposeFlags {
    /// The file [default: compose.yaml, compose.yml, docker-compose.yaml or docker-compose.yml here]
    #[arg(short = 'f', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The project's name [default: the file's, or its folder's]
    #[arg(short = 'p', long, value_name = "NAME", value_parser = parse_name)]
    pub project_name: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub command: ComposeCommand,
}

/// The commands of `sietch compose`.
#[derive(Debug, Subcommand)]
pub enum ComposeCommand {
    /// Start what does not run as the file says, and show what it writes; Ctrl-C ends all
    Up {
        /// Leave the machines in the background
        #[arg(short = 'd', long)]
        detach: bool,
    },
    /// End and remove the machines, and the networks
    Down {
        /// Remove the volumes too, with all that they hold
        #[arg(short = 'v', long)]
        volumes: bool,
    },
    /// List the project's machines
    Ps,
    /// Show what the project's machines wrote
    Logs {
        /// Go on as they write more
        #[arg(short = 'f', long)]
        follow: bool,
    },
}
