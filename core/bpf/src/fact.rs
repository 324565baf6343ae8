//! What a filter may ask about a packet that does not lie in its bytes.

/// A question to whoever brought the packet (`SKF_AD_*` in `linux/filter.h`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// The EtherType, host order; of the inner packet if a card took a tag off.
    Protocol,
    /// `PACKET_HOST`, `PACKET_BROADCAST`, ...: to whom it was addressed.
    PacketType,
    /// The number of the interface.
    Interface,
    /// The mark that rules have put on it.
    Mark,
    /// The receive queue.
    Queue,
    /// `ARPHRD_*` of the interface.
    HardwareType,
    /// The hash of its flow, zero if nobody computed it.
    FlowHash,
    /// The CPU that runs the filter.
    Cpu,
    /// The tag that a card took off, priority and all; zero if there was none.
    VlanTag,
    /// One if a card took a tag off, else zero.
    VlanPresent,
    /// The EtherType of that tag.
    VlanProtocol,
    /// Where the payload behind the transport header starts.
    PayloadOffset,
    /// A random number, another one each time.
    Random,
}

/// Whoever can answer.
pub trait Facts {
    /// The answer for the packet that the filter looks at.
    fn fact(&mut self, fact: Fact) -> u32;
}
