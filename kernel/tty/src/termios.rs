//! The settings of a terminal (termios(3)); bits and layout are Linux's own.

use bitflags::bitflags;

bitflags! {
    /// What happens to input (`c_iflag`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Input: u32 {
        /// The eighth bit is stripped.
        const ISTRIP = 0x20;
        /// NL becomes CR.
        const INLCR = 0x40;
        /// CR is ignored.
        const IGNCR = 0x80;
        /// CR becomes NL.
        const ICRNL = 0x100;
        /// Upper case becomes lower case.
        const IUCLC = 0x200;
        /// STOP and START halt and resume output.
        const IXON = 0x400;
        /// Any character resumes output.
        const IXANY = 0x800;
        /// The bell rings when the line is full.
        const IMAXBEL = 0x2000;
        /// Characters are UTF-8: erasing takes a whole one.
        const IUTF8 = 0x4000;
        /// Settings without effect here are kept.
        const _ = !0;
    }
}

bitflags! {
    /// What happens to output (`c_oflag`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Output: u32 {
        /// Output is processed at all.
        const OPOST = 0x1;
        /// Lower case becomes upper case.
        const OLCUC = 0x2;
        /// NL becomes CR NL.
        const ONLCR = 0x4;
        /// CR becomes NL.
        const OCRNL = 0x8;
        /// No CR in column 0.
        const ONOCR = 0x10;
        /// NL also returns to column 0.
        const ONLRET = 0x20;
        /// Tabs become spaces.
        const XTABS = 0x1800;
        /// Settings without effect here are kept.
        const _ = !0;
    }
}

bitflags! {
    /// How lines are edited (`c_lflag`).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Local: u32 {
        /// INTR, QUIT and SUSP send signals.
        const ISIG = 0x1;
        /// Input comes in lines that can be edited.
        const ICANON = 0x2;
        /// Input is echoed.
        const ECHO = 0x8;
        /// ERASE wipes the character from the screen.
        const ECHOE = 0x10;
        /// KILL starts a new line.
        const ECHOK = 0x20;
        /// NL is echoed even without ECHO.
        const ECHONL = 0x40;
        /// Signals do not flush the queues.
        const NOFLSH = 0x80;
        /// Output of background programs stops them.
        const TOSTOP = 0x100;
        /// Control characters are echoed as ^X.
        const ECHOCTL = 0x200;
        /// KILL wipes the line from the screen.
        const ECHOKE = 0x800;
        /// WERASE, REPRINT and LNEXT work.
        const IEXTEN = 0x8000;
        /// Settings without effect here are kept.
        const _ = !0;
    }
}

/// Special characters, by their index in `c_cc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// Sends SIGINT.
    Intr = 0,
    /// Sends SIGQUIT.
    Quit = 1,
    /// Erases a character.
    Erase = 2,
    /// Erases the line.
    Kill = 3,
    /// Ends the input.
    Eof = 4,
    /// Time limit of a raw read, in tenths of a second.
    Time = 5,
    /// Least bytes of a raw read.
    Min = 6,
    /// Resumes output.
    Start = 8,
    /// Halts output.
    Stop = 9,
    /// Sends SIGTSTP.
    Susp = 10,
    /// Ends a line besides NL.
    Eol = 11,
    /// Shows the line again.
    Reprint = 12,
    /// Erases a word.
    Werase = 14,
    /// Takes the next character as it is.
    Lnext = 15,
    /// Ends a line besides NL.
    Eol2 = 16,
}

/// Special characters there are.
pub const SPECIALS: usize = 19;
/// A special character that is switched off.
const DISABLED: u8 = 0;
/// 38400 baud, 8 bits, receiver on, hang-up on close.
const CONTROL_DEFAULT: u32 = 0x4bf;

/// All settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Termios {
    /// Input.
    pub input: Input,
    /// Output.
    pub output: Output,
    /// The line's hardware; only kept.
    pub control: u32,
    /// Editing.
    pub local: Local,
    /// The line discipline's number; only kept.
    pub line: u8,
    /// Special characters.
    pub special: [u8; SPECIALS],
}

impl Default for Termios {
    /// Linux's settings of a new terminal.
    fn default() -> Self {
        let editing = Local::ECHO
            .union(Local::ECHOE)
            .union(Local::ECHOK)
            .union(Local::ECHOKE);
        let keys = Local::ISIG
            .union(Local::ICANON)
            .union(Local::ECHOCTL)
            .union(Local::IEXTEN);
        Self {
            input: Input::ICRNL.union(Input::IXON),
            output: Output::OPOST.union(Output::ONLCR),
            control: CONTROL_DEFAULT,
            local: editing.union(keys),
            line: 0,
            special:
                *b"\x03\x1c\x7f\x15\x04\x00\x01\x00\x11\x13\x1a\x00\x12\x0f\x17\x16\x00\x00\x00",
        }
    }
}

impl Termios {
    /// The character or number of a special.
    pub fn get(&self, special: Special) -> u8 {
        self.special[special as usize]
    }

    /// Whether `byte` is that special character, and that is not switched off.
    pub fn is(&self, special: Special, byte: u8) -> bool {
        byte != DISABLED && self.get(special) == byte
    }

    /// Whether input comes in lines.
    pub fn is_canonical(&self) -> bool {
        self.local.contains(Local::ICANON)
    }
}
