//! Priority-based flow control frames (IEEE 802.1Qbb, now 802.1Q clause 36).
