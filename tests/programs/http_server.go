// A web server that keeps Go's scheduler and garbage collector busy.
package main

import (
	"fmt"
	"log"
	"net/http"
	"strings"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		done := make(chan int)
		for i := 0; i < 4; i++ {
			go func(i int) { done <- len(strings.Repeat("x", 10000*i)) }(i)
		}
		sum := 0
		for i := 0; i < 4; i++ {
			sum += <-done
		}
		fmt.Fprintf(w, "hello from Go, %d\n", sum)
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
