/* SPDX-License-Identifier: MIT */
/* `sojourn report`: run documents from files, merged and printed. */
#ifndef OBSERVER_REPORT_REPORT_H
#define OBSERVER_REPORT_REPORT_H

/* argv[0] is "report". Returns the exit code. */
int report_main(int argc, char **argv);

#endif
