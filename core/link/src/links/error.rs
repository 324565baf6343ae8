//! Why an operation on links fails.

use hal::NicError;

use crate::flow::FlowError;
use crate::group::PlaceError;
use crate::open::OpenError;
use crate::promisc::NotSet;
use crate::props::PropError;

/// Why an operation on links failed; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// There is no such link or stream.
    NotFound,
    /// The name does not begin with a letter and end in a digit, or is too long.
    BadName,
    /// The name is taken.
    NameTaken,
    /// There are as many as there can be.
    TooMany,
    /// The link cannot have clients, or cannot be changed so.
    WrongClass,
    /// No station can have that address.
    BadAddress,
    /// A client of the port has the address in that VLAN.
    AddressTaken,
    /// Streams hold the link, or clients are over it.
    InUse,
    /// No rings as asked for.
    Place(PlaceError),
    /// The card refused.
    Nic(NicError),
    /// The property cannot be set so.
    Prop(PropError),
    /// The flow cannot be made so.
    Flow(FlowError),
    /// The stream may not do that.
    Open(OpenError),
    /// A promiscuous level that is not set was to be turned off.
    NotPromiscuous(NotSet),
}
