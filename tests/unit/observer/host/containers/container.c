// SPDX-License-Identifier: MIT
/* Containers and pods: paths of cgroups as runtimes make them, and their files in folders like theirs. */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/containers/container.h"
#include "sojourn/cleanup.h"
#include "unit.h"

#define ID	 "3f2a77c1b5d94e0fa8c6123456789abcdef00112233445566778899aabbccdde"
#define INNER	 "aaaa77c1b5d94e0fa8c6123456789abcdef00112233445566778899aabbccdde"
#define UID	 "6d0c1f2e-0a1b-4c2d-8e3f-001122334455"
#define UID_UNIT "6d0c1f2e_0a1b_4c2d_8e3f_001122334455"
#define MIRROR	 "0123456789abcdef0123456789abcdef"
#define SLICE	 "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_UNIT ".slice"

/* Documented layouts: systemd's slices and plain folders, version 2 and version 1. */
static const struct {
	const char *name, *text, *cgroup, *id, *uid;
} paths[] = {
	{"docker, systemd", "0::/system.slice/docker-" ID ".scope\n",
	 "/system.slice/docker-" ID ".scope", ID, ""},
	{"docker, folders, v1", "12:pids:/docker/" ID "\n1:name=systemd:/docker/" ID "\n0::/\n",
	 "/docker/" ID, ID, ""},
	{"podman, root", "0::/machine.slice/libpod-" ID ".scope/container\n",
	 "/machine.slice/libpod-" ID ".scope/container", ID, ""},
	{"podman, its monitor", "0::/machine.slice/libpod-conmon-" ID ".scope\n",
	 "/machine.slice/libpod-conmon-" ID ".scope", "", ""},
	{"containerd of Kubernetes, systemd", "0::" SLICE "/cri-containerd-" ID ".scope\n",
	 SLICE "/cri-containerd-" ID ".scope", ID, UID},
	{"CRI-O", "0::" SLICE "/crio-" ID ".scope\n", SLICE "/crio-" ID ".scope", ID, UID},
	{"containerd, folders", "0::/kubepods/besteffort/pod" UID "/" ID "\n",
	 "/kubepods/besteffort/pod" UID "/" ID, ID, UID},
	{"a static pod", "0::/kubepods/pod" MIRROR "/" ID "\n", "/kubepods/pod" MIRROR "/" ID, ID,
	 MIRROR},
	{"containerd without systemd's unit",
	 "0::/system.slice/containerd.service/kubepods-pod" UID_UNIT ".slice:cri-containerd:" ID
	 "\n",
	 "/system.slice/containerd.service/kubepods-pod" UID_UNIT ".slice:cri-containerd:" ID, ID,
	 UID},
	{"a node that is a container itself",
	 "0::/docker/" ID "/kubelet" SLICE "/cri-containerd-" INNER ".scope\n",
	 "/docker/" ID "/kubelet" SLICE "/cri-containerd-" INNER ".scope", INNER, UID},
	{"seen from another cgroup namespace", "0::/../../" ID "\n", "/../../" ID, ID, ""},
	{"a unit", "0::/system.slice/nginx.service\n", "/system.slice/nginx.service", "", ""},
	{"a unit, both versions", "3:cpu:/\n1:name=systemd:/system.slice/nginx.service\n0::/\n",
	 "/system.slice/nginx.service", "", ""},
	{"the root", "0::/\n", "/", "", ""},
	{"names that look like them", "0::/user.slice/podman-abc.service/poda/3f2a\n",
	 "/user.slice/podman-abc.service/poda/3f2a", "", ""},
	{"a longer number is none", "0::/docker/" ID "0\n", "/docker/" ID "0", "", ""},
	{"a terminal's escape", "0::/a\033[2Jb\n", "/a?[2Jb", "", ""},
	{"nothing", "", "", "", ""},
	{"no such lines", "cgroup\n::\n1:\n", "", "", ""},
};

static void test_paths(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct run_place place;

		container_parse(paths[i].text, &place);
		if (strcmp(place.cgroup, paths[i].cgroup) != 0 ||
		    strcmp(place.container_id, paths[i].id) != 0 ||
		    strcmp(place.pod_uid, paths[i].uid) != 0)
			fail_msg("%s: '%s' '%s' '%s'", paths[i].name, place.cgroup,
				 place.container_id, place.pod_uid);
	}
}

/* A path that is too long is cut, and the container that it names is still found. */
static void test_long_path(void **state)
{
	autofree char *text = NULL;
	char path[2048];
	struct run_place place;

	memset(path, 'a', sizeof(path));
	for (size_t i = 0; i < sizeof(path); i += 32)
		path[i] = '/';
	path[sizeof(path) - 1] = 0;
	assert_true(asprintf(&text, "0::%s/docker-" ID ".scope\n", path) > 0);
	container_parse(text, &place);
	assert_int_equal(strlen(place.cgroup), sizeof(place.cgroup) - 1);
	assert_string_equal(place.container_id, ID);
}

/* ---- names ---- */

static void put(const char *root, const char *path, const char *text)
{
	autofree char *whole = NULL;
	FILE *file;

	assert_true(asprintf(&whole, "%s%s", root, path) > 0);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		(void)mkdir(whole, 0700);
		*at = '/';
	}
	file = fopen(whole, "w");
	assert_true(file && fputs(text, file) >= 0 && !fclose(file));
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static const struct {
	const char *name, *id, *uid;
	const char *path, *text;
	const char *container, *pod, *namespace;
} names[] = {
	{"docker", ID, "", "/var/lib/docker/containers/" ID "/config.v2.json",
	 "{\"ID\":\"" ID "\",\"Config\":{\"Name\":\"other\"},\"Name\":\"/web\"}", "web", "", ""},
	{"docker, half written", ID, "", "/var/lib/docker/containers/" ID "/config.v2.json",
	 "{\"Name\":\"/we", "", "", ""},
	{"podman", ID, "", "/var/lib/containers/storage/overlay-containers/containers.json",
	 "[{\"id\":\"" INNER "\",\"names\":[\"other\"]},{\"id\":\"" ID "\",\"names\":[\"web\"]}]",
	 "web", "", ""},
	{"podman, another form", ID, "",
	 "/var/lib/containers/storage/overlay-containers/containers.json",
	 "[7,{\"id\":\"" ID "\",\"names\":\"web\"}]", "", "", ""},
	{"kubelet's logs", ID, UID, "/var/log/containers/web-7d-x2_shop_nginx-" ID ".log", "",
	 "nginx", "web-7d-x2", "shop"},
	{"another container's log", ID, UID, "/var/log/containers/web_shop_nginx-" INNER ".log", "",
	 "", "", ""},
	{"not a log of the kubelet's", ID, UID, "/var/log/containers/x-" ID ".log", "", "", "", ""},
	{"kubelet's folders", ID, UID, "/var/log/pods/shop_web-7d-x2_" UID "/nginx/0.log", "", "",
	 "web-7d-x2", "shop"},
	{"a static pod's folder", ID, MIRROR,
	 "/var/log/pods/kube-system_etcd-n1_" MIRROR "/etcd/0.log", "", "", "etcd-n1",
	 "kube-system"},
	{"nothing", ID, UID, "/var/log/messages", "", "", "", ""},
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char root[] = "/tmp/sojourn-unit-XXXXXX";
		struct run_place place = {0};

		assert_non_null(mkdtemp(root));
		put(root, names[i].path, names[i].text);
		snprintf(place.container_id, sizeof(place.container_id), "%s", names[i].id);
		snprintf(place.pod_uid, sizeof(place.pod_uid), "%s", names[i].uid);
		container_name(root, &place);
		nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
		if (strcmp(place.container, names[i].container) != 0 ||
		    strcmp(place.pod, names[i].pod) != 0 ||
		    strcmp(place.pod_namespace, names[i].namespace) != 0)
			fail_msg("%s: '%s' '%s' '%s'", names[i].name, place.container, place.pod,
				 place.pod_namespace);
	}
}

/* A user has a cgroup of his own with the number of root's container. */
static void test_names_of_others(void **state)
{
	static const char *const parents[] = {"/sys/fs/cgroup/user.slice",
					      "/sys/fs/cgroup/machine.slice"};
	char root[] = "/tmp/sojourn-container.XXXXXX";

	if (geteuid())
		skip();
	assert_non_null(mkdtemp(root));
	put(root, "/var/lib/docker/containers/" ID "/config.v2.json", "{\"Name\":\"/web\"}");
	for (size_t i = 0; i < 2; i++) {
		autofree char *folder = NULL, *file = NULL;
		struct run_place place = {0};

		assert_true(asprintf(&folder, "%s%s", root, parents[i]) > 0);
		assert_true(asprintf(&file, "%s/docker-" ID ".scope/x", parents[i]) > 0);
		put(root, file, "");
		assert_int_equal(chown(folder, i ? 0 : 1000, 0), 0);
		snprintf(place.container_id, sizeof(place.container_id), ID);
		snprintf(place.cgroup, sizeof(place.cgroup), "%s/docker-" ID ".scope",
			 parents[i] + strlen("/sys/fs/cgroup"));
		container_name(root, &place);
		assert_string_equal(place.container, i ? "web" : "");
	}
	nftw(root, drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- several processes of a service ---- */

static void test_common(void **state)
{
	static const struct {
		const char *one, *other, *common;
	} cases[] = {
		{"/a/b", "/a/b", "/a/b"}, {"/a/b", "/a/c", "/a"},     {"/a/b", "/a/bc", "/a"},
		{"/a/bc", "/a/b", "/a"},  {"/a/b/c", "/a/b", "/a/b"}, {"/a/b", "/a/b/c", "/a/b"},
		{"/a", "/b", "/"},	  {"/", "/a", "/"},	      {"/a", "/", "/"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run_place place = {0}, other = {0};

		snprintf(place.cgroup, sizeof(place.cgroup), "%s", cases[i].one);
		snprintf(other.cgroup, sizeof(other.cgroup), "%s", cases[i].other);
		container_common(&place, &other);
		if (strcmp(place.cgroup, cases[i].common) != 0)
			fail_msg("%s, %s: '%s'", cases[i].one, cases[i].other, place.cgroup);
	}
}

/* Two containers of a pod: the pod is known, which of the two is not. */
static void test_common_pod(void **state)
{
	struct run_place place, other;

	container_parse("0::" SLICE "/crio-" ID ".scope\n", &place);
	container_parse("0::" SLICE "/crio-" INNER ".scope\n", &other);
	strcpy(place.pod, "web-1");
	container_common(&place, &other);
	assert_string_equal(place.cgroup, SLICE);
	assert_string_equal(place.container_id, "");
	assert_string_equal(place.pod_uid, UID);
	assert_string_equal(place.pod, "web-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	   cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_common),
		cmocka_unit_test(test_common_pod), cmocka_unit_test(test_names_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
