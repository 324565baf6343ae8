// Which interfaces there are, as the C library tells it.
#include "check.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

static int is_ip(struct sockaddr *name, const char *text) {
    char shown[64] = "";
    if (!name || name->sa_family != AF_INET) return 0;
    inet_ntop(AF_INET, &((struct sockaddr_in *)name)->sin_addr, shown, sizeof shown);
    return !strcmp(shown, text);
}

static void loopback_has_its_address_and_mask(void) {
    struct ifaddrs *all, *one;
    int found = 0;
    CHECK(getifaddrs(&all) == 0);
    for (one = all; one; one = one->ifa_next) {
        if (strcmp(one->ifa_name, "lo") || !is_ip(one->ifa_addr, "127.0.0.1")) continue;
        found++;
        CHECK(is_ip(one->ifa_netmask, "255.0.0.0"));
        CHECK((one->ifa_flags & (IFF_UP | IFF_RUNNING | IFF_LOOPBACK)) ==
              (IFF_UP | IFF_RUNNING | IFF_LOOPBACK));
    }
    freeifaddrs(all);
    CHECK(found == 1);
}

static void each_interface_is_named_with_its_station(void) {
    struct ifaddrs *all, *one;
    int stations = 0;
    CHECK(getifaddrs(&all) == 0);
    for (one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_PACKET) stations++;
    for (one = all; one; one = one->ifa_next)
        if (one->ifa_addr && one->ifa_addr->sa_family == AF_INET)
            printf("# %s has an address\n", one->ifa_name);
    freeifaddrs(all);
    CHECK(stations >= 1);
}

int main(void) {
    TEST(loopback_has_its_address_and_mask);
    TEST(each_interface_is_named_with_its_station);
    return check_status();
}
