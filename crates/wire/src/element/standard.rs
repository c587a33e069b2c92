//! Numbers of the IANA elements that this project uses by name.

use super::ElementId;

macro_rules! standard {
    ($($name:ident = $id:literal, $doc:literal;)*) => {
        $(
            #[doc = concat!("`", $doc, "`, IANA ", stringify!($id), ".")]
            pub const $name: ElementId = ElementId::iana($id);
        )*
        #[cfg(test)]
        const NAMED: &[(ElementId, &str)] = &[$(($name, $doc)),*];
    };
}

standard! {
    SOURCE_IPV4_ADDRESS = 8, "sourceIPv4Address";
    DESTINATION_IPV4_ADDRESS = 12, "destinationIPv4Address";
    SOURCE_IPV6_ADDRESS = 27, "sourceIPv6Address";
    DESTINATION_IPV6_ADDRESS = 28, "destinationIPv6Address";
    OBSERVATION_POINT_ID = 138, "observationPointId";
    TEMPLATE_ID = 145, "templateId";
    OBSERVATION_DOMAIN_ID = 149, "observationDomainId";
    FLOW_START_MILLISECONDS = 152, "flowStartMilliseconds";
    FLOW_END_MILLISECONDS = 153, "flowEndMilliseconds";
    FLOW_KEY_INDICATOR = 173, "flowKeyIndicator";
    DOT1Q_VLAN_ID = 243, "dot1qVlanId";
    DOT1Q_CUSTOMER_VLAN_ID = 245, "dot1qCustomerVlanId";
    INGRESS_PHYSICAL_INTERFACE = 252, "ingressPhysicalInterface";
    EGRESS_PHYSICAL_INTERFACE = 253, "egressPhysicalInterface";
    INFORMATION_ELEMENT_ID = 303, "informationElementId";
    OBSERVATION_TIME_MILLISECONDS = 323, "observationTimeMilliseconds";
    INFORMATION_ELEMENT_DATA_TYPE = 339, "informationElementDataType";
    INFORMATION_ELEMENT_DESCRIPTION = 340, "informationElementDescription";
    INFORMATION_ELEMENT_NAME = 341, "informationElementName";
    INFORMATION_ELEMENT_RANGE_BEGIN = 342, "informationElementRangeBegin";
    INFORMATION_ELEMENT_RANGE_END = 343, "informationElementRangeEnd";
    INFORMATION_ELEMENT_SEMANTICS = 344, "informationElementSemantics";
    INFORMATION_ELEMENT_UNITS = 345, "informationElementUnits";
    PRIVATE_ENTERPRISE_NUMBER = 346, "privateEnterpriseNumber";
    LAYER2_SEGMENT_ID = 351, "layer2SegmentId";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Registry;

    #[test]
    fn each_constant_names_the_element_that_the_registry_has_under_its_number() {
        let registry = Registry::default();
        for (id, name) in NAMED {
            assert_eq!(registry.get(*id).expect(name).name, *name);
        }
    }
}
