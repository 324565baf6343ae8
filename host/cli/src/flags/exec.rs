//! Commands for machines that run: `exec`, `attach`, `cp` and `kill`.

use std::ffi::OsString;

use clap::{ArgAction, Args};

use super::{DetachKeys, User};

/// `sietch exec`.
#[derive(Debug, Args)]
pub struct ExecFlags {
    /// Keep standard input open
    #[arg(short = 'i', long)]
    pub interactive: bool,
    /// Give the command a terminal
    #[arg(short = 't', long)]
    pub tty: bool,
    /// Run the command in the background
    #[arg(short = 'd', long)]
    pub detach: bool,
    /// Set an environment variable; NAME alone takes the host's value
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// The command's working folder [default: that of the machine's program]
    #[arg(short = 'w', long = "workdir", value_name = "FOLDER")]
    pub folder: Option<String>,
    /// Run the command as this user [default: that of the machine's program]
    #[arg(short = 'u', long = "user", value_name = "USER[:GROUP]")]
    pub user: Option<User>,
    /// The machine
    pub name: String,
    /// The program in the machine, a path or a name to search, and its arguments
    #[arg(
        value_name = "COMMAND [ARGS]",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<String>,
}

/// `sietch kill`.
#[derive(Debug, Args)]
pub struct KillFlags {
    /// The signal for the machine's program: a name or a number
    #[arg(short = 's', long, default_value = "KILL")]
    pub signal: String,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch cp`.
#[derive(Debug, Args)]
pub struct CpFlags {
    /// Keep owners and groups, by number, and set-id bits
    #[arg(short = 'a', long)]
    pub archive: bool,
    /// Follow SOURCE if it is a symbolic link
    #[arg(short = 'L', long)]
    pub follow_link: bool,
    /// Say nothing of how far it is
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// A path of this host, NAME:PATH in a machine, or - for a tar at standard input
    pub source: OsString,
    /// A path of this host, NAME:PATH in a machine, or - for a tar at standard output
    pub target: OsString,
}

/// `sietch attach`.
#[derive(Debug, Args)]
pub struct AttachFlags {
    /// Type nothing: only look
    #[arg(long)]
    pub no_stdin: bool,
    /// Pass signals on to the program
    #[arg(long, value_name = "true|false", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub sig_proxy: bool,
    /// The keys that leave the machine alone again [default: ctrl-p,ctrl-q]
    #[arg(long, value_name = "KEYS")]
    pub detach_keys: Option<DetachKeys>,
    /// The machine
    pub name: String,
}
