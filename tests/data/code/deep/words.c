#include <ctype.h>
#include <stdio.h>

/* Counts words: runs of characters that are no white space. */
static long count_words(FILE *stream)
{
	long words = 0;
	int inside = 0, c;

	while ((c = getc(stream)) != EOF) {
		if (isspace(c)) {
			inside = 0;
		} else if (!inside) {
			inside = 1;
			words++;
		}
	}
	return words;
}

/*
Title: not a paper, and so never shown
*/

int main(void)
{
	printf("%ld\n", count_words(stdin)); /* "ein Wort, zwei Wörter" */
	return 0;
}
